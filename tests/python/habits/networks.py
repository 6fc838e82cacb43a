"""Several optimizers, and networks beside the trained one."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from .table import network, row, sgd, weights


# ---- several optimizers

class Gan(nn.Module):
    def __init__(self):
        super().__init__()
        self.generator, self.critic = network(1, (4, 8, 6)), network(2, (6, 8, 1))


@row()
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


@row(two=True)
@row("delta")
def three_steps_of_the_critic(run):
    """The generator steps less often than the critic, and its Adam counts only its own steps.
    Only the generator has weight decay."""
    gan = Gan()
    first, second = (torch.optim.Adam(network.parameters(), lr=0.01, betas=(0.5, 0.9), weight_decay=decay)
                     for network, decay in ((gan.generator, 0.1), (gan.critic, 0)))
    job = run.join(gan, [first, second])
    for step, (real, _) in enumerate(job.over(run.batches())):
        fake = gan.generator(real[:, :4])
        second.zero_grad()
        (gan.critic(fake.detach()).mean() - gan.critic(real).mean()).backward()
        second.step()
        if step % 3 == 2:
            first.zero_grad()
            (-gan.critic(gan.generator(real[:, 2:])).mean()).backward()
            first.step()
    return weights(gan)


@row(two=True)
@row("delta")
def three_optimizers_with_schedulers(run):
    """The list of the optimizers is not in the order of the model's layers."""
    model = network(widths=(6, 8, 8, 3))
    kinds = [torch.optim.AdamW(model[number].parameters(), lr=rate, weight_decay=0.1)
             for number, rate in ((2, 0.01), (4, 0.003), (0, 0.02))]
    job = run.join(model, kinds)
    schedulers = [job.keep(torch.optim.lr_scheduler.StepLR(kinds[0], 3, 0.5)),
                  job.keep(torch.optim.lr_scheduler.CosineAnnealingLR(kinds[2], 9))]
    for x, y in job.over(run.batches()):
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        for optimizer in kinds:
            optimizer.step()
        for scheduler in schedulers:
            scheduler.step()
    return weights(model)


@row(two=True)
@row("delta")
def deterministic_policy_gradient(run):
    """The actor learns with the critic's new weights. zero_grad() drops the gradients that the critic gets from
    this."""
    model = nn.ModuleDict({"actor": network(1, (6, 8, 2)), "critic": network(2, (8, 8, 1))})
    actor = torch.optim.Adam(model["actor"].parameters(), lr=0.003)
    critic = torch.optim.Adam(model["critic"].parameters(), lr=0.01, weight_decay=0.01)
    slow = copy.deepcopy(model).requires_grad_(False)
    job = run.join(model, [actor, critic])
    value = lambda nets, states, actions: nets["critic"](torch.cat([states, actions], 1)).squeeze(1)
    for states, _ in job.over(run.batches()):
        wanted = states.sum(1) + 0.9 * value(slow, states.flip(1), slow["actor"](states.flip(1)))
        critic.zero_grad()
        F.mse_loss(value(model, states, states[:, :2]), wanted).backward()
        critic.step()
        actor.zero_grad()
        (-value(model, states, model["actor"](states)).mean()).backward()
        actor.step()
        for late, now in zip(slow.parameters(), model.parameters()):
            late.data.lerp_(now.data, 0.1)
    return weights(model)


@row(refused="group 0 of optimizer 1 .SGD. differs from optimizer 0 .Adam. in type.*delta")
@row("delta")
def adam_for_one_and_sgd_for_the_other(run):
    gan = Gan()
    optimizers = [torch.optim.Adam(gan.generator.parameters(), lr=0.01), sgd(gan.critic.parameters(), lr=0.02)]
    job = run.join(gan, optimizers)
    for real, _ in job.over(run.batches()):
        for optimizer, sign in zip(optimizers, (-1, 1)):
            gan.zero_grad()
            (sign * gan.critic(gan.generator(real[:, :4])).mean()).backward()
            optimizer.step()
    return weights(gan)


@row(refused="parameter critic.0.weight: its values have changed.*as a list")
@row("delta", refused="parameter critic.0.weight: its values have changed.*as a list")
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
@row(two=True)
def actor_and_critic(run):
    """Both learn from one loss; the critic also makes additional steps."""
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
    """A target network, which follows slowly and is sometimes replaced."""
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

    def follow(self):
        for key, query in zip(self.key.parameters(), self.query.parameters()):
            key.data = key.data * 0.9 + query.data * 0.1


@row(refused="parameter key.0.weight: its values have changed.*a module that is not given to join")
def a_momentum_encoder_within(run):
    model = Twins()
    optimizer = sgd(model.query.parameters())
    job = run.join(model, optimizer)
    for x, _ in job.over(run.batches()):
        optimizer.zero_grad()
        F.mse_loss(model.query(x), model.key(x)).backward()
        optimizer.step()
        model.follow()
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
        model.follow()
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
