"""A relay in user space, for what packet filters cannot do: it delays what it passes on, and cuts connections in the
middle of messages."""

import asyncio
import threading


class Relay:
    """Listens for one server and passes on to `target`. `delay()` returns how many seconds the next piece takes.
    `bytes_to_cut()` returns after how many bytes, both ways together, a new connection is cut. Each may be None. All of
    it runs on the loop's thread."""

    def __init__(self, target, delay=None, bytes_to_cut=None):
        self.target, self.delay, self.bytes_to_cut = target, delay, bytes_to_cut
        self.connections = set()
        self.cuts = self.bytes = 0
        self.address = None

    async def listen(self):
        server = await asyncio.start_server(self.connect, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.address = f"{host}:{port}"

    async def connect(self, reader, writer):
        host, port = self.target.rsplit(":", 1)
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.transport.abort()
            return
        connection = Connection(self, (writer, far_writer), self.bytes_to_cut and self.bytes_to_cut())
        self.connections.add(connection)
        await asyncio.gather(connection.carry(reader, far_writer), connection.carry(far_reader, writer))
        self.connections.discard(connection)

    async def cut_all(self):
        for connection in list(self.connections):
            connection.cut()


class Connection:
    def __init__(self, relay, writers, budget):
        self.relay, self.writers, self.budget = relay, writers, budget
        self.over = False

    def cut(self):
        """Resets both sides; nothing that was in flight arrives. Counts once."""
        if self.over:
            return
        self.over = True
        self.relay.cuts += 1
        for writer in self.writers:
            writer.transport.abort()

    def end(self):
        for writer in self.writers:
            writer.close()

    async def carry(self, reader, writer):
        """Carries one direction. Pieces keep their order; a delayed piece does not hold up the reading of the next."""
        pieces = asyncio.Queue(maxsize=256)
        sender = asyncio.create_task(self.send(pieces, writer))
        loop = asyncio.get_running_loop()
        try:
            while piece := await reader.read(65536):
                due = loop.time() + (self.relay.delay() if self.relay.delay else 0)
                await pieces.put((due, piece))
        except OSError:
            pass
        await pieces.put(None)
        await sender

    async def send(self, pieces, writer):
        loop = asyncio.get_running_loop()
        alive = True
        while (item := await pieces.get()) is not None:
            if not alive:
                continue
            due, piece = item
            await asyncio.sleep(max(0, due - loop.time()))
            alive = await self.pass_on(piece, writer)
        if alive:
            self.end()

    async def pass_on(self, piece, writer):
        """Returns False if the connection is over."""
        if self.over:
            return False
        self.relay.bytes += len(piece)
        last = self.budget is not None and self.budget < len(piece)
        part = piece[:self.budget] if last else piece
        # Before the other direction has its turn, because both share the budget.
        if self.budget is not None:
            self.budget -= len(part)
        try:
            writer.write(part)
            await writer.drain()
        except OSError:
            return False
        if last:
            self.cut()
        return not last


class Relays:
    """One relay for each of `targets`, on a thread of their own. A context."""

    def __init__(self, targets, **how):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.relays = [Relay(target, **how) for target in targets]

    def __enter__(self):
        self.thread.start()
        for relay in self.relays:
            self.call(relay.listen())
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def cut_all(self, number):
        """Cuts all connections to server `number` now."""
        self.call(self.relays[number].cut_all())

    @property
    def cuts(self):
        return sum(relay.cuts for relay in self.relays)

    @property
    def bytes(self):
        return sum(relay.bytes for relay in self.relays)
