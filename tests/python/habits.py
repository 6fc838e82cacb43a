"""Habits of PyTorch scripts, each as a short script that trains alone or as a worker: the rows of habits_test.py.

A script gets a `run`: `run.join` is leeway.torch.join, or does nothing; `run.batches()` are this worker's. It returns the
tensors that it would report."""

import copy
import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune

#: Rows: (script, exchange, the refusal's text or None, whether two workers do what twice the batch does).
ROWS = []
STEPS = 12


def row(exchange="gradient", refused=None, two=False, **options):
    def add(script):
        ROWS.append((script, exchange, refused, two, options))
        return script
    return add


def network(seed=1, widths=(6, 8, 3)):
    torch.manual_seed(seed)
    layers = [part for one, other in zip(widths, widths[1:]) for part in (nn.Linear(one, other), nn.Tanh())]
    return nn.Sequential(*layers[:-1])


def sgd(parameters, **options):
    return torch.optim.SGD(parameters, **{"lr": 0.1, "momentum": 0.9, **options})


def train(model, optimizer, batches, after=lambda: None, loss=F.cross_entropy):
    for x, y in batches:
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
        after()


def weights(model):
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


# ---- reading weights while training

@row(two=True)
@row("delta")
def moving_average(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    average = copy.deepcopy(model)

    def update():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.data.mul_(0.8).add_(fast.data, alpha=0.2)
    train(model, optimizer, job.over(run.batches()), update)
    return {**weights(model), **{f"average.{name}": value for name, value in weights(average).items()}}


@row(two=True)
def stochastic_weight_averaging(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    for step, batch in enumerate(job.over(run.batches())):
        train(model, optimizer, [batch])
        if step >= 6:
            averaged.update_parameters(model)
    return weights(averaged)


@row()
def averaging_with_batch_norm(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = sgd(model.parameters())
    batches = run.batches()
    job = run.join(model, optimizer)
    averaged = torch.optim.swa_utils.AveragedModel(model)
    train(model, optimizer, job.over(batches), lambda: averaged.update_parameters(model))
    torch.optim.swa_utils.update_bn(batches, averaged)
    return {**weights(averaged), **{f"own.{name}": value for name, value in weights(model).items()}}


@row(two=True)
@row("delta")
def curves_of_weights(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    norms, histograms, ranges = [], [], []

    def log():
        norms.append(torch.stack([parameter.data.norm() for parameter in model.parameters()]))
        histograms.append(torch.nn.utils.parameters_to_vector(model.parameters()).detach().quantile(torch.linspace(0, 1, 5)))
        ranges.append(torch.tensor([float(p.max() - p.min()) for p in model.parameters()]))
    train(model, optimizer, job.over(run.batches()), log)
    return {"norms": torch.stack(norms), "histograms": torch.stack(histograms), "ranges": torch.stack(ranges)}


@row(two=True)
@row("delta")
def the_best_weights_so_far(run):
    model = network()
    optimizer = sgd(model.parameters())
    x, y = run.held_out()
    job = run.join(model, optimizer)
    best, losses = {}, []

    def keep():
        model.eval()
        with torch.no_grad():
            losses.append(F.cross_entropy(model(x), y))
        model.train()
        if losses[-1] == min(losses):
            best.update(weights(model))
    train(model, optimizer, job.over(run.batches()), keep)
    model.load_state_dict(best)
    return {**weights(model), "losses": torch.stack(losses)}


@row(two=True)
def an_evaluation_with_averaged_weights(run):
    """Puts others in, and its own back."""
    model = network()
    optimizer = sgd(model.parameters())
    x, y = run.held_out()
    job = run.join(model, optimizer)
    average, losses = [parameter.detach().clone() for parameter in model.parameters()], []

    def evaluate():
        for slow, fast in zip(average, model.parameters()):
            slow.lerp_(fast.detach(), 0.3)
        kept = [parameter.detach().clone() for parameter in model.parameters()]
        for parameter, value in zip(model.parameters(), average):
            parameter.data.copy_(value)
        with torch.no_grad():
            losses.append(F.cross_entropy(model.eval()(x), y))
        for parameter, value in zip(model.train().parameters(), kept):
            parameter.data.copy_(value)
    train(model, optimizer, job.over(run.batches()), evaluate)
    return {**weights(model), "losses": torch.stack(losses)}


@row(two=True)
def checkpoints_and_copies(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    halves, kept = [], []

    def save():
        halves.append(copy.deepcopy(model).half().float()[0].weight.detach())
        kept.append({name: value.clone() for name, value in model.state_dict().items()})
    train(model, optimizer, job.over(run.batches()), save)
    return {"halves": torch.stack(halves), "kept": torch.stack([state["0.weight"] for state in kept])}


# ---- weights that the script changes

CHANGED = "parameter .*: the script has changed it"


@row(refused=CHANGED)
@row("delta")
def clamped_critic(run):
    critic = network(widths=(6, 8, 1))
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01) if run.exchange == "delta" else sgd(critic.parameters())
    job = run.join(critic, optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        (critic(x.flip(0) * 0.3).mean() - critic(x).mean()).backward()
        optimizer.step()
        for parameter in critic.parameters():
            parameter.data.clamp_(-0.05, 0.05)
    return weights(critic)


@row(refused=CHANGED)
@row("delta")
def loaded_while_training(run):
    model, start = network(), weights(network(7))
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for step, batch in enumerate(job.over(run.batches())):
        train(model, optimizer, [batch])
        if step == 3:
            model.load_state_dict(start)
    return weights(model)


@row(two=True)
@row("delta")
def loaded_before(run):
    model = network()
    model.load_state_dict(weights(network(7)))
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row(refused=CHANGED)
@row("delta")
def decay_by_hand(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)

    @torch.no_grad()
    def decay():
        for parameter in model.parameters():
            parameter.mul_(0.99)
    train(model, optimizer, job.over(run.batches()), decay)
    return weights(model)


@row(refused=CHANGED)
@row("delta")
def lookahead(run):
    """Zhang, Lucas, Hinton and Ba 2019: every fifth step goes half the way back to slow weights."""
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    slow = [parameter.detach().clone() for parameter in model.parameters()]
    for step, batch in enumerate(job.over(run.batches())):
        train(model, optimizer, [batch])
        if step % 5 == 4:
            for parameter, anchor in zip(model.parameters(), slow):
                anchor.add_(parameter.data - anchor, alpha=0.5)
                parameter.data.copy_(anchor)
    return weights(model)


@row(refused=CHANGED)
@row("delta")
def sharpness_aware(run):
    """Foret et al. 2021: the gradient is taken where the loss is worst nearby."""
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
            moves = [0.05 * p.grad / norm for p in model.parameters()]
            for parameter, move in zip(model.parameters(), moves):
                parameter.add_(move)
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for parameter, move in zip(model.parameters(), moves):
                parameter.sub_(move)
        optimizer.step()
        optimizer.zero_grad()
    return weights(model)


@row(refused="no longer where join put it")
@row("delta", refused="no longer where join put it")
def from_a_vector(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)

    def noise():
        vector = nn.utils.parameters_to_vector(model.parameters())
        nn.utils.vector_to_parameters(vector * 0.99, model.parameters())
    train(model, optimizer, job.over(run.batches()), noise)
    return weights(model)


# ---- several optimizers

class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = network(1, (4, 8, 6)), network(2, (6, 8, 1))


@row(refused="one rule, and the script 2 optimizers.*delta")
@row("delta")
def generator_and_critic(run):
    gan = Gan()
    first = torch.optim.Adam(gan.generator.parameters(), lr=0.01, betas=(0.5, 0.999))
    second = torch.optim.Adam(gan.critic.parameters(), lr=0.02, betas=(0.5, 0.999))
    job = run.join(gan, [first, second])
    draws, sure = torch.Generator().manual_seed(3), F.binary_cross_entropy_with_logits
    for real, _ in job.over(run.batches()):
        noise = torch.randn(len(real), 4, generator=draws)
        fake, ones = gan.generator(noise), torch.ones(len(real), 1)
        second.zero_grad()
        (sure(gan.critic(real), ones) + sure(gan.critic(fake.detach()), 0 * ones)).backward()
        second.step()
        first.zero_grad()
        sure(gan.critic(fake), ones).backward()
        first.step()
    return weights(gan)


@row("delta")
def five_steps_of_the_critic(run):
    gan = Gan()
    first, second = sgd(gan.generator.parameters()), sgd(gan.critic.parameters(), momentum=0, lr=0.02)
    job = run.join(gan, [first, second])
    draws = torch.Generator().manual_seed(3)
    for step, (real, _) in enumerate(job.over(run.batches())):
        fake = gan.generator(torch.randn(len(real), 4, generator=draws))
        second.zero_grad()
        (gan.critic(fake.detach()).mean() - gan.critic(real).mean()).backward()
        second.step()
        for parameter in gan.critic.parameters():
            parameter.data.clamp_(-0.1, 0.1)
        if step % 5 == 4:
            first.zero_grad()
            (-gan.critic(fake).mean()).backward()
            first.step()
    return weights(gan)


@row(refused="parameter critic.0.weight: it has moved.*as a list")
@row("delta", refused="parameter critic.0.weight: it has moved.*as a list")
def the_second_optimizer_is_forgotten(run):
    gan = Gan()
    first, second = sgd(gan.generator.parameters(), momentum=0), sgd(gan.critic.parameters())
    job = run.join(gan, first)
    for real, _ in job.over(run.batches()):
        fake = gan.generator(real[:, :4])
        for optimizer, batch in ((second, fake.detach()), (first, fake)):
            optimizer.zero_grad(set_to_none=True)
            gan.critic(batch).mean().backward()
            optimizer.step()
    return weights(gan)


@row("delta")
@row(refused="one rule, and the script 2 optimizers")
def actor_and_critic(run):
    """Both learn from one loss; the critic also from more steps."""
    actor, critic = network(1), network(2, (6, 8, 1))
    models = nn.ModuleDict({"actor": actor, "critic": critic})
    optimizers = [torch.optim.Adam(actor.parameters(), lr=0.003), torch.optim.Adam(critic.parameters(), lr=0.01)]
    job = run.join(models, optimizers)
    for states, actions in job.over(run.batches()):
        value, reward = critic(states).squeeze(1), states.sum(1)
        chosen = F.log_softmax(actor(states), 1).gather(1, actions[:, None]).squeeze(1)
        loss = F.mse_loss(value, reward) - (chosen * (reward - value).detach()).mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
    return weights(models)


@row("delta")
def sparse_and_dense_optimizers(run):
    torch.manual_seed(1)
    table, head = nn.Embedding(9, 4, sparse=True), nn.Linear(4, 3)
    model = nn.Sequential(table, nn.Flatten(), head)
    optimizers = [torch.optim.SparseAdam(list(table.parameters()), lr=0.01), torch.optim.AdamW(head.parameters(), lr=0.01)]
    job = run.join(model, optimizers)
    for x, y in job.over(run.batches()):
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(model((x[:, :1].abs() * 3).long().clamp(max=8)), y).backward()
        for optimizer in optimizers:
            optimizer.step()
    return weights(model)


# ---- networks beside the trained one

@row(two=True)
@row("delta")
def deep_q_learning(run):
    """A target network, which follows softly and is replaced now and then."""
    online = network()
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = sgd(online.parameters(), lr=0.05)
    job = run.join(online, optimizer)
    for step, (states, actions) in enumerate(job.over(run.batches())):
        wanted = states.sum(1) + 0.9 * target(states.flip(1)).max(1).values
        found = online(states).gather(1, actions[:, None]).squeeze(1)
        optimizer.zero_grad()
        F.smooth_l1_loss(found, wanted).backward()
        optimizer.step()
        for slow, fast in zip(target.parameters(), online.parameters()):
            slow.data.copy_(0.1 * fast.data + 0.9 * slow.data)
        if step % 5 == 4:
            target.load_state_dict(online.state_dict())
    return {**weights(online), **{f"target.{name}": value for name, value in weights(target).items()}}


class Twins(nn.Module):
    """A momentum encoder within the model."""

    def __init__(self):
        super().__init__()
        self.query = network()
        self.key = copy.deepcopy(self.query).requires_grad_(False)


@row(refused="parameter key.0.weight: it has moved.*a module that join does not get")
def a_momentum_encoder_within(run):
    model = Twins()
    optimizer = sgd(model.query.parameters())
    job = run.join(model, optimizer)

    def follow():
        for key, query in zip(model.key.parameters(), model.query.parameters()):
            key.data = key.data * 0.9 + query.data * 0.1
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        F.mse_loss(model.query(x), model.key(x)).backward()
        optimizer.step()
        follow()
    return weights(model)


@row(two=True)
def a_momentum_encoder_beside(run):
    model = Twins()
    optimizer = sgd(model.query.parameters())
    job = run.join(model.query, optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        F.mse_loss(model.query(x), model.key(x * 0.9)).backward()
        optimizer.step()
        for key, query in zip(model.key.parameters(), model.query.parameters()):
            key.data = key.data * 0.9 + query.data * 0.1
    return weights(model)


@row(two=True)
@row("delta")
def distillation(run):
    teacher, student = network(5).eval(), network()
    optimizer = sgd(student.parameters())
    job = run.join(student, optimizer)
    for x, y in job.over(run.batches()):
        with torch.no_grad():
            soft = F.softmax(teacher(x) / 2, 1)
        scores = student(x)
        optimizer.zero_grad()
        (F.cross_entropy(scores, y) + F.kl_div(F.log_softmax(scores / 2, 1), soft, reduction="batchmean")).backward()
        optimizer.step()
    return weights(student)


# ---- other tensors than at join

STAGES = "Stages"


@row(refused=f"0.weight: it was frozen at join.*{STAGES}")
@row("delta", refused=f"0.weight: it was frozen at join.*{STAGES}")
def unfrozen_while_training(run):
    model = network()
    model[0].requires_grad_(False)
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for step, batch in enumerate(job.over(run.batches())):
        if step == 5:
            model[0].requires_grad_(True)
        train(model, optimizer, [batch])
    return weights(model)


@row(refused=f"other parameters than at join.*{STAGES}")
@row("delta", refused=f"other parameters than at join.*{STAGES}")
def a_group_more(run):
    model = network()
    optimizer = sgd(model[2].parameters())
    job = run.join(model, optimizer)
    for step, batch in enumerate(job.over(run.batches())):
        if step == 5:
            optimizer.add_param_group({"params": model[0].parameters()})
        train(model, optimizer, [batch])
    return weights(model)


@row(refused=f"2.weight: it is another tensor.*{STAGES}")
@row("delta", refused=f"2.weight: it is another tensor.*{STAGES}")
def a_new_head(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for step, batch in enumerate(job.over(run.batches())):
        if step == 5:
            model[2] = nn.Linear(8, 3)
        train(model, optimizer, [batch])
    return weights(model)


@row(refused=f"0.weight: it is no longer there.*{STAGES}")
@row("delta", refused=f"0.weight: it is no longer there.*{STAGES}")
def pruned_while_training(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for step, batch in enumerate(job.over(run.batches())):
        if step == 5:
            prune.l1_unstructured(model[0], "weight", 0.5)
        train(model, optimizer, [batch])
    return weights(model)


@row(two=True)
@row("delta")
def pruned_before(run):
    model = network()
    prune.l1_unstructured(model[0], "weight", 0.5)
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row(stages=2)
@row("delta", stages=2)
def fine_tuning_in_two_stages(run):
    """First a new head on a frozen body, then all of it at a smaller rate."""
    body = network(widths=(6, 8, 8))
    body.requires_grad_(False)
    model = nn.Sequential(body, nn.Linear(8, 3))
    batches = run.batches()
    optimizer = sgd(model[1].parameters())
    train(model, optimizer, run.join(model, optimizer).over(batches[:6]))
    body.requires_grad_(True)
    optimizer = sgd(model.parameters(), lr=0.01)
    train(model, optimizer, run.join(model, optimizer).over(batches[6:]))
    return weights(model)


@row(stages=2)
def another_head_for_another_task(run):
    torch.manual_seed(1)
    body, batches = network(widths=(6, 8, 8)), run.batches()
    for head, part in ((nn.Linear(8, 3), batches[:6]), (nn.Linear(8, 3), batches[6:])):
        model = nn.Sequential(body, head)
        optimizer = sgd(model.parameters())
        train(model, optimizer, run.join(model, optimizer).over(part))
    return weights(model)


@row(two=True)
@row("delta")
def a_head_on_a_frozen_body(run):
    model = network(widths=(6, 8, 8, 3))
    model[:4].requires_grad_(False)
    optimizer = sgd((p for p in model.parameters() if p.requires_grad), weight_decay=0.01)
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row(two=True)
@row("delta")
def a_head_on_a_body_that_no_optimizer_has(run):
    model = network(widths=(6, 8, 8, 3))
    optimizer = sgd(model[4].parameters(), weight_decay=0.01)
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


# ---- parameters without a gradient

class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.body, self.heads = nn.Linear(6, 8), nn.ModuleList(nn.Linear(8, 3) for _ in range(2))

    def forward(self, x, which):
        return self.heads[which](self.body(x).tanh())


def alternate(run, **options):
    model = Branches()
    optimizer = sgd(model.parameters(), **options)
    job = run.join(model, optimizer)
    for step, (x, y) in enumerate(job.over(run.batches())):
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(x, step % 2), y).backward()
        optimizer.step()
    return weights(model)


@row(refused="heads.1.weight: it has no gradient.*delta")
@row("delta")
def two_tasks_in_turn(run):
    return alternate(run)


@row(two=True)
def two_tasks_in_turn_without_momentum(run):
    return alternate(run, momentum=0)


@row(refused="heads.1.weight: it has no gradient.*freeze it before join")
@row("delta")
def a_layer_that_is_never_used(run):
    model = Branches()
    optimizer = sgd(model.parameters(), momentum=0, weight_decay=0.1)
    job = run.join(model, optimizer)
    train(functools.partial(model, which=0), optimizer, job.over(run.batches()))
    return weights(model)


# ---- gradients

@row(two=True)
@row("delta")
def gradient_penalty(run):
    critic = network(widths=(6, 8, 1))
    optimizer = sgd(critic.parameters(), lr=0.02)
    job = run.join(critic, optimizer)
    for x, _ in job.over(run.batches()):
        mixed = (0.6 * x + 0.4 * x.flip(1)).requires_grad_(True)
        (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        optimizer.zero_grad()
        (critic(x.flip(1)).mean() - critic(x).mean() + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()).backward()
        optimizer.step()
    return weights(critic)


@row()
@row("delta")
def clipped_norm(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    norms = []
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), 0.3))
        optimizer.step()
    return {**weights(model), "norms": torch.stack(norms)}


@row()
def clipped_values(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.05)
        optimizer.step()
    return weights(model)


@row(steps=6)
def accumulated(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for number, (x, y) in enumerate(job.over(run.batches())):
        (F.cross_entropy(model(x), y) / 2).backward()
        if number % 2:
            optimizer.step()
            optimizer.zero_grad()
    return weights(model)


@row()
def gradient_noise(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    draws = torch.Generator().manual_seed(5)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for parameter in model.parameters():
            parameter.grad.data.add_(torch.randn(parameter.shape, generator=draws), alpha=0.01)
        optimizer.step()
    return weights(model)


@row(two=True)
def hooks_on_gradients(run):
    model = network()
    model[0].weight.register_hook(lambda gradient: gradient * 0.5)
    model[2].register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 0.9,))
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row(two=True)
def two_losses_two_backwards(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        scores = model(x)
        F.cross_entropy(scores, y).backward(retain_graph=True)
        (0.1 * scores.square().mean()).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
@row("delta")
def penalties_in_the_loss(run):
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)

    def loss(scores, y):
        return F.cross_entropy(scores, y, label_smoothing=0.1) + 1e-3 * sum(p.abs().sum() for p in model.parameters())
    train(model, optimizer, job.over(run.batches()), loss=loss)
    return weights(model)


@row(two=True)
def meta_learning(run):
    """One inner step through which the outer gradient goes (MAML, Finn, Abbeel and Levine 2017)."""
    model = nn.Linear(6, 3)
    nn.init.constant_(model.weight, 0.1)
    nn.init.zeros_(model.bias)
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        inner = F.linear(torch.ones(2, 6), model.weight, model.bias).square().mean()
        slopes = torch.autograd.grad(inner, [model.weight, model.bias], create_graph=True)
        weight, bias = model.weight - 0.1 * slopes[0], model.bias - 0.1 * slopes[1]
        F.cross_entropy(F.linear(x, weight, bias), y).backward()
        optimizer.step()
    return weights(model)


# ---- optimizers and their settings

@row(two=True)
@row("delta")
def rates_by_layer(run):
    model = network(widths=(6, 8, 8, 3))
    groups = [{"params": model[number].parameters(), "lr": 0.1 * 0.5 ** number} for number in (0, 2, 4)]
    optimizer = sgd(groups)
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row(two=True)
def no_decay_for_biases(run):
    model = network()
    optimizer = sgd([{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
                     {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0}], nesterov=True)
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row("delta")
def warm_restarts(run):
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    job = run.join(model, optimizer)
    scheduler = job.keep(torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 3, 2))
    rates = []
    train(model, optimizer, job.over(run.batches()), lambda: (scheduler.step(), rates.append(optimizer.param_groups[0]["lr"])))
    return {**weights(model), "rates": torch.tensor(rates)}


@row("delta")
def a_rate_that_follows_the_loss(run):
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    x, y = run.held_out()
    job = run.join(model, optimizer)
    scheduler = job.keep(torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1, factor=0.5))

    def plateau():
        with torch.no_grad():
            scheduler.step(float(F.cross_entropy(model.eval()(x), y)))
        model.train()
    train(model, optimizer, job.over(run.batches()), plateau)
    return {**weights(model), "rate": torch.tensor(optimizer.param_groups[0]["lr"])}


@row(refused="LBFGS.*delta")
@row("delta")
def lbfgs(run):
    model = network()
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        def closure():
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss
        optimizer.step(closure)
    return weights(model)


@row(refused="maximize has no counterpart.*delta")
@row("delta")
def ascent(run):
    policy = network()
    optimizer = sgd(policy.parameters(), maximize=True)
    job = run.join(policy, optimizer)
    train(policy, optimizer, job.over(run.batches()), loss=lambda scores, y: -F.cross_entropy(scores, y))
    return weights(policy)


@row()
@row("delta")
def autocast_and_a_scaler(run):
    """A scaler that is switched off, as on a CPU, steps the optimizer itself."""
    model = network()
    optimizer = sgd(model.parameters())
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return weights(model)


# ---- models

@row(two=True)
@row("delta")
def tied_embeddings(run):
    torch.manual_seed(1)
    table, mix, out = nn.Embedding(10, 6), nn.Linear(6, 6), nn.Linear(6, 10, bias=False)
    out.weight = table.weight
    model = nn.Sequential(table, mix, nn.Tanh(), out)
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        tokens = (x.abs() * 4).long().clamp(max=9)
        F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def one_network_twice(run):
    """A siamese network: triplets through the same weights."""
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        F.triplet_margin_loss(model(x), model(x * 0.9), model(x.flip(1)), margin=2).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
@row("delta")
def two_modules_one_optimizer(run):
    encoder, decoder = network(1, (6, 4, 2)), network(2, (2, 4, 6))
    optimizer = sgd([*encoder.parameters(), *decoder.parameters()])
    job = run.join(nn.ModuleList([encoder, decoder]), optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        F.mse_loss(decoder(encoder(x)), x).backward()
        optimizer.step()
    return {**weights(encoder), **{f"decoder.{name}": value for name, value in weights(decoder).items()}}


@row(two=True)
def a_learned_temperature(run):
    """A parameter that no module's forward reads, and one that a loss has."""
    model = nn.ModuleDict({"body": network()})
    model.register_parameter("temperature", nn.Parameter(torch.tensor([0.7])))
    optimizer = sgd(model.parameters(), lr=0.05)
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        F.cross_entropy(model["body"](x) / model.temperature.exp(), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def recurrent(run):
    torch.manual_seed(1)
    model = nn.ModuleDict({"cells": nn.LSTM(3, 5, num_layers=2, batch_first=True), "out": nn.Linear(5, 3)})
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        states, _ = model["cells"](x.view(-1, 2, 3))
        F.cross_entropy(model["out"](states[:, -1]), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def a_transformer(run):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Unflatten(1, (1, 6)), nn.TransformerEncoder(layer, 2), nn.Flatten(), nn.Linear(6, 3))
    optimizer = sgd(model.parameters(), lr=0.02)
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row()
@row("delta")
def dropout_and_batch_norm(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    optimizer = sgd(model.parameters())
    x, y = run.held_out()
    job = run.join(model, optimizer)
    torch.manual_seed(9)
    losses = []

    def validate():
        with torch.no_grad():
            losses.append(F.cross_entropy(model.eval()(x), y))
        model.train()
    train(model, optimizer, job.over(run.batches()), validate)
    return {**weights(model), "losses": torch.stack(losses)}


@row()
def spectral_norm(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.utils.spectral_norm(nn.Linear(6, 8)), nn.Tanh(), nn.utils.weight_norm(nn.Linear(8, 3)))
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row(two=True)
def recomputed_activations(run):
    from torch.utils.checkpoint import checkpoint
    model = network(widths=(6, 8, 8, 3))
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        hidden = checkpoint(model[:4], x.requires_grad_(True))
        F.cross_entropy(model[4](hidden), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def straight_through(run):
    """A function of one's own, whose gradient is another one's."""
    class Sign(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x.sign()

        @staticmethod
        def backward(context, slope):
            return slope.clamp(-1, 1)
    model = network()
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    for x, y in job.over(run.batches()):
        optimizer.zero_grad()
        F.cross_entropy(model[2](Sign.apply(model[0](x))), y).backward()
        optimizer.step()
    return weights(model)


@row(two=True)
def convolutions_in_channels_last(run):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Unflatten(1, (2, 3, 1)), nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(),
                          nn.Linear(12, 3)).to(memory_format=torch.channels_last)
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)


@row(refused="DataParallel: start a worker for each device")
@row("delta", refused="DataParallel: start a worker for each device")
def data_parallel(run):
    model = nn.DataParallel(network())
    optimizer = sgd(model.parameters())
    job = run.join(model, optimizer)
    train(model, optimizer, job.over(run.batches()))
    return weights(model)
