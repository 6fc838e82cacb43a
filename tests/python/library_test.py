#!/usr/bin/python3
"""Calls libleeway-client.so in the wrong order and with wrong arguments: the result is a code and a text, and the job
goes on as if the call had not been made. library/client.h says what each function returns."""

import ctypes
import unittest

from jobs import job_of, job_yaml

from leeway import _library as native

OK, AGAIN, FINISHED, FAILED, NOT_FOUND = native.OK, native.AGAIN, native.FINISHED, native.FAILED, native.NOT_FOUND
INVALID_ARGUMENT, UNAVAILABLE, MISUSE = 10, 12, 17
TOTAL, CLOCKS, RATE = 1500, 4, 0.5
HUGE = 2**64 - 1
library = native.load()


def tensors_of(*names, **more):
    """Returns one tensor of TOTAL elements, or several that share them."""
    tensors = (native.Tensor * len(names))()
    for tensor, name in zip(tensors, names):
        tensor.name, tensor.dimensions = name, 1
        tensor.shape = (ctypes.c_uint64 * 1)(TOTAL // len(names))
        tensor.momentum = tensor.learning_rate_factor = tensor.weight_decay_factor = 1
        for field, value in more.items():
            setattr(tensor, field, value)
    return tensors


def options_of(coordinator="127.0.0.1:1", **changes):
    options = native.JoinOptions(ctypes.sizeof(native.JoinOptions), coordinator.encode(), 0, tensors_of(b"w"), 1,
                                 (ctypes.c_float * TOTAL)(), b"{type: sgd, learning_rate: %f}" % RATE, 5)
    for field, value in changes.items():
        setattr(options, field, value)
    return options


def sized(kind, **fields):
    return ctypes.byref(kind(**{"size": ctypes.sizeof(kind), **fields}))


def report(**fields):
    return sized(native.Report, **{"steps": 1, "examples": 1, **fields})


def rates_of(*parts):
    """Makes rates of pairs: where the part ends, and its factor."""
    return (native.Rate * len(parts))(*parts)


class Program:
    """Calls the functions by name, for one job."""

    def __init__(self, test, coordinator):
        self.test, self.handle = test, ctypes.c_void_p()
        test.assertEqual(library.leeway_join(options_of(coordinator), ctypes.byref(self.handle)), OK, library.leeway_error())
        test.addCleanup(lambda: library.leeway_free(self.handle))

    def gives(self, code, text, name, *arguments):
        found = getattr(library, f"leeway_{name}")(self.handle, *arguments)
        said = library.leeway_error().decode() if found not in (OK, AGAIN, FINISHED) else ""
        self.test.assertEqual(found, code, f"leeway_{name}{arguments}: {said}")
        self.test.assertRegex(said, text)

    def works(self, name, *arguments):
        self.gives(OK, "^$", name, *arguments)

    def begin(self, expected):
        clock = ctypes.c_uint64()
        self.works("begin", 20, ctypes.byref(clock))
        self.test.assertEqual(clock.value, expected)
        self.works("wait", 0, TOTAL, 20)

    def vector(self, name):
        address = getattr(library, f"leeway_{name}")(self.handle)
        return (ctypes.c_float * TOTAL).from_address(address) if address else None

    def end_with_ones(self):
        self.vector("contribution")[:] = [1] * TOTAL
        self.works("end", report(), 20)


def one_worker(exchange="{type: gradient}", more="", **options):
    settings = {"stop": f"{{clocks: {CLOCKS}}}", **options}
    return job_of(job_yaml(batch_size=1, examples=100, servers=1, workers=1, exchange=exchange, more=more, **settings), servers=1)


class Join(unittest.TestCase):
    def test_options(self):
        behind = tensors_of(b"a", b"b")
        behind[0].averaged = 1
        for code, text, changes in (
                (MISUSE, "options.size is 8, not .*another version", {"size": 8}),
                (INVALID_ARGUMENT, "rank is too large", {"rank": 2**40}),
                (INVALID_ARGUMENT, "tensors is null", {"tensors": None}),
                (INVALID_ARGUMENT, "tensor 0 has no name", {"tensors": tensors_of(None)}),
                (INVALID_ARGUMENT, "tensor 0 has .*no shape", {"tensors": tensors_of(b"w", shape=None)}),
                (INVALID_ARGUMENT, "'w' has an invalid kind", {"tensors": tensors_of(b"w", kind=4)}),
                (INVALID_ARGUMENT, "another tensor has the same name", {"tensors": tensors_of(b"w", b"w"), "tensor_count": 2}),
                (INVALID_ARGUMENT, "put trained tensors first", {"tensors": behind, "tensor_count": 2}),
                (INVALID_ARGUMENT, "0 values, but the tensors have 1500 elements", {"initial": None}),
                (INVALID_ARGUMENT, "not YAML", {"update": b"{type"})):
            with self.subTest(text):
                job = ctypes.c_void_p(1)
                self.assertEqual(library.leeway_join(ctypes.byref(options_of(**changes)), ctypes.byref(job)), code)
                self.assertRegex(library.leeway_error().decode(), text)
                self.assertIsNone(job.value)

    def test_null(self):
        """Null in place of the job, and of what a call needs."""
        self.assertEqual(library.leeway_join(None, ctypes.byref(ctypes.c_void_p())), MISUSE)
        self.assertEqual(library.leeway_join(ctypes.byref(options_of()), None), MISUSE)
        for name, arguments in native.ARGUMENTS.items():
            if arguments[:1] != [ctypes.c_void_p]:
                continue
            text = ctypes.create_string_buffer(b"before")
            given = [text if kind is ctypes.c_char_p else 0 if kind in (ctypes.c_double, ctypes.c_uint64, ctypes.c_size_t,
                                                                       ctypes.c_int) else None for kind in arguments[1:]]
            if name == "leeway_waiting":
                given[1] = len(text)
            found = getattr(library, name)(None, *given)
            result = native.RESULTS.get(name, ctypes.c_int)
            self.assertEqual(found, MISUSE if result is ctypes.c_int else None, name)
            if name == "leeway_waiting":
                self.assertEqual(text.value, b"")
            elif name != "leeway_free":
                what = b"watch" if name.startswith("leeway_watch_") else b"job"
            self.assertEqual(library.leeway_error(), b"the %s is null" % what, name)


class Calls(unittest.TestCase):
    """Calls in a real job of one worker."""

    def start(self, *arguments, **options):
        job = one_worker(*arguments, **options)
        self.job = job.__enter__()
        self.addCleanup(job.__exit__, None, None, None)
        program = Program(self, self.job.coordinator)
        program.gives(MISUSE, "has not joined yet: call leeway_joined first", "begin", 0, None)
        self.assertIsNone(program.vector("weights"))
        program.works("joined", 20)
        return program

    def ends_by(self, code):
        self.assertEqual(self.job.servers[0].wait(20), code)

    def outside_of_a_clock(self, program):
        self.assertIsNone(program.vector("contribution"))
        for name, arguments in {"wait": (0, 1, 1), "next_batch": (1, ctypes.byref(ctypes.c_uint64())), "examples": (1,),
                                "rates": (rates_of((TOTAL, 1)), 1), "final": (0, 1), "end": (report(), 1)}.items():
            program.gives(MISUSE, "may be called while a clock runs, not between two clocks", name, *arguments)
        program.gives(MISUSE, "the reason must be", "leave", OK, b"", 1)
        program.gives(INVALID_ARGUMENT, f"finished at clock . of {CLOCKS}: it can only have stopped or failed", "leave",
                      FINISHED, b"", 20)
        program.gives(NOT_FOUND, "not resumed", "load_state", ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_size_t()))

    def within_a_clock(self, program):
        for name, arguments in {"begin": (1, None), "settle": (1,), "read_again": (1, ctypes.byref(ctypes.c_void_p())),
                                "evaluated": (sized(native.Evaluation),),
                                "state_wanted": (ctypes.byref(ctypes.c_int()),), "save_state": (b"x", 1),
                                "leave": (FINISHED, b"", 1)}.items():
            program.gives(MISUSE, "may be called between two clocks, not while a clock runs", name, *arguments)
        for first, count in ((0, TOTAL + 1), (TOTAL, 1), (TOTAL + 1, 0), (HUGE, 2), (2, HUGE), (HUGE, HUGE)):
            for name, more in (("wait", (1,)), ("final", ())):
                program.gives(INVALID_ARGUMENT, f"{count} elements? from element {first} are not all in the model, which has {TOTAL}", name, first, count,
                              *more)
        program.gives(INVALID_ARGUMENT, "a contribution must have at least one example", "examples", 0)
        program.gives(MISUSE, "rates is null", "rates", None, 1)
        for text, parts in ((r"rates\[0\].end: is 1499; the last end must be 1500, the number of trained elements", [(TOTAL - 1, 1)]),
                            (r"rates\[1\].end: is 1501; it must be above 9", [(9, 1), (TOTAL + 1, 1)]),
                            (r"rates\[1\].factor: is -2", [(9, 1), (TOTAL, -2)])):
            program.gives(INVALID_ARGUMENT, text, "rates", rates_of(*parts), len(parts))
        program.gives(MISUSE, "does not lease batches .*from the seed, the clock and its rank", "next_batch", 1,
                      ctypes.byref(ctypes.c_uint64()))
        count = ctypes.c_size_t(7)
        program.works("upcoming_batches", None, 0, ctypes.byref(count))
        self.assertEqual(count.value, 0)

    def with_wrong_arguments(self, program):
        for name, arguments in {"info_of": (None,), "tensor_of": (0, None), "end": (None, 1), "evaluated": (None,),
                                "next_batch": (1, None), "upcoming_batches": (None, 1, ctypes.byref(ctypes.c_size_t())),
                                "state_wanted": (None,), "read_again": (1, None), "save_state": (None, 1), "load_state": (None, None)}.items():
            program.gives(MISUSE, "null", name, *arguments)
        for name, kind, more in (("info_of", native.Info, ()), ("end", native.Report, (1,)),
                                 ("evaluated", native.Evaluation, ())):
            for size in (0, ctypes.sizeof(kind) - 1, ctypes.sizeof(kind) + 1):
                program.gives(MISUSE, f"size is {size}, not {ctypes.sizeof(kind)}: .*another version", name,
                              sized(kind, size=size), *more)
        for index in (1, HUGE):
            program.gives(NOT_FOUND, "no tensor has this index", "tensor_of", index, ctypes.byref(native.Tensor()))

    def reads_what_the_servers_have(self, program, value):
        """Reads the servers' weights, whatever the program has written into its own."""
        read = ctypes.c_void_p()
        program.works("settle", 20)
        kept = program.vector("weights")[0]
        program.vector("weights")[0] = 7
        program.works("read_again", 20, ctypes.byref(read))
        self.assertEqual(set((ctypes.c_float * TOTAL).from_address(read.value)), {value})
        self.assertEqual(program.vector("weights")[0], 7)
        program.vector("weights")[0] = kept

    def test_nothing_has_changed(self):
        program = self.start()
        program.works("joined", 0)
        for clock in range(CLOCKS):
            self.outside_of_a_clock(program)
            self.with_wrong_arguments(program)
            program.begin(clock)
            self.assertEqual(set(program.vector("weights")), {-RATE * clock})
            self.within_a_clock(program)
            self.with_wrong_arguments(program)
            program.works("final", 0, 0)
            program.works("wait", TOTAL, 0, 1)
            program.end_with_ones()
            self.reads_what_the_servers_have(program, -RATE * (clock + 1))
        program.gives(FINISHED, "^$", "begin", 20, None)
        program.gives(FINISHED, "^$", "begin", 20, None)
        self.assertEqual(set(program.vector("weights")), {-RATE * CLOCKS})
        for _ in range(2):
            program.works("leave", FINISHED, None, 20)
        for name, arguments in {"begin": (1, None), "settle": (1,), "final": (0, 1)}.items():
            program.gives(MISUSE, "not after it has left", name, *arguments)
        self.ends_by(0)

    def test_final_twice(self):
        """Elements that have left cannot be taken back: the only sensible call is then to leave."""
        program = self.start()
        program.begin(0)
        program.vector("contribution")[:] = [1] * TOTAL
        program.works("final", 0, 500)
        program.gives(INVALID_ARGUMENT, "elements 499 to 509 .*already final", "final", 499, 10)
        program.works("leave", FAILED, b"told twice", 20)
        self.ends_by(3)
        self.assertIn("told twice", self.job.logs())

    def test_rates_after_elements_that_are_final(self):
        """A block may have left with a factor of 1."""
        program = self.start()
        program.begin(0)
        program.vector("contribution")[:] = [1] * TOTAL
        program.works("rates", rates_of((TOTAL, 0.5)), 1)
        program.works("final", 0, 500)
        program.gives(MISUSE, "are already final; give the rates before the first call", "rates", rates_of((TOTAL, 2)), 1)
        program.works("end", report(), 20)
        program.begin(1)
        self.assertEqual(set(program.vector("weights")), {-RATE * 0.5})

    def test_elements_that_a_clock_leaves_out(self):
        program = self.start()
        program.begin(0)
        program.vector("contribution")[:] = [1] * TOTAL
        program.works("rates", rates_of((9, native.SKIP), (TOTAL, 1)), 2)
        program.works("end", report(), 20)
        program.begin(1)
        self.assertEqual(list(program.vector("weights")), [0] * 9 + [-RATE] * (TOTAL - 9))

    def test_leased_batches(self):
        """A single worker gets every batch once: 100 batches of one example."""
        program = self.start("{type: gradient, accumulation: 7}", consistency="{mode: async}", assignment="leased",
                             stop="{epochs: 1}")
        info = native.Info(size=ctypes.sizeof(native.Info))
        program.works("info_of", ctypes.byref(info))
        self.assertEqual((info.batches_per_epoch, info.steps_per_clock), (100, 7))
        batch, upcoming, count = ctypes.c_uint64(), (ctypes.c_uint64 * 100)(), ctypes.c_size_t()
        given = []
        while library.leeway_begin(program.handle, 20, None) == OK:
            program.works("wait", 0, TOTAL, 20)
            program.gives(MISUSE, "leases its batches .* this clock has not asked for a batch", "end", report(), 20)
            steps = 0
            while steps < 7:
                program.works("upcoming_batches", upcoming, 3, ctypes.byref(count))
                expected = upcoming[:count.value]
                self.assertLessEqual(len(expected), 3)
                code = library.leeway_next_batch(program.handle, 20, ctypes.byref(batch))
                if code == NOT_FOUND:
                    break
                self.assertEqual(code, OK)
                self.assertEqual(expected[:1] or [batch.value], [batch.value])
                given.append(batch.value)
                steps += 1
            program.vector("contribution")[:] = [1] * TOTAL
            program.works("end", report(steps=steps, examples=steps), 20)
        self.assertEqual(sorted(given), list(range(100)))
        program.works("leave", FINISHED, b"", 20)
        self.ends_by(0)

    def test_reading_weights_of_one_s_own(self):
        program = self.start("{type: delta, local_steps: 1}", "update: {type: sgd, learning_rate: 1}")
        program.gives(MISUSE, "in a delta or elastic exchange the weights are the worker's own", "read_again", 20,
                      ctypes.byref(ctypes.c_void_p()))
        program.works("leave", FAILED, b"", 20)

    def test_final_without_gradients(self):
        program = self.start("{type: delta, local_steps: 1}", "update: {type: sgd, learning_rate: 1}")
        program.begin(0)
        self.assertIsNone(program.vector("contribution"))
        program.gives(MISUSE, "only a gradient exchange takes final elements", "final", 0, TOTAL)
        program.works("leave", FAILED, b"", 20)


class Watch(unittest.TestCase):
    def test_before_a_read(self):
        """The same after a read that found no servers."""
        watch, tensor = ctypes.c_void_p(), native.Tensor()
        self.assertEqual(library.leeway_watch_open(b"127.0.0.1:1", 0.1, None), MISUSE)
        self.assertEqual(library.leeway_watch_open(b"127.0.0.1", 0.1, ctypes.byref(watch)), INVALID_ARGUMENT)
        self.assertIsNone(watch.value)
        self.assertEqual(library.leeway_watch_open(b"127.0.0.1:1", 0.1, ctypes.byref(watch)), OK)
        for _ in range(2):
            self.assertEqual(library.leeway_watch_tensor_of(watch, 0, ctypes.byref(tensor)), MISUSE)
            self.assertRegex(library.leeway_error().decode(), "nothing has been read: call leeway_watch_read first")
            self.assertIsNone(library.leeway_watch_weights(watch))
            self.assertEqual(library.leeway_watch_read(watch, 20, None), UNAVAILABLE)
            self.assertRegex(library.leeway_error().decode(), "is server 0 running, and is this its address")
        library.leeway_watch_free(watch)


if __name__ == "__main__":
    unittest.main()
