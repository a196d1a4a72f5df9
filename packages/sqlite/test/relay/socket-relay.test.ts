/** Sockets of the relay: who may enter, what breaks, what is bounded. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join as joinPath } from "node:path";
import process from "node:process";
import { engine, memoryStore, type RelayFrame, type RelayGap } from "@statewright/core";
import { type Codec, createCodec } from "@statewright/core/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type SocketRelay, socketRelay } from "../../src/index.ts";
import { openRelayFolder, type RelayPlace } from "../../src/relay/relay-folder.ts";
import { createMessageReader, encodeMessage } from "../../src/relay/relay-messages.ts";

let folder: string;
let file: string;
const closing: (() => void)[] = [];
const runtimeFolder = process.env["XDG_RUNTIME_DIR"];
const codec = createCodec([]);

beforeEach(() => {
  folder = mkdtempSync(joinPath(tmpdir(), "sockets-"));
  process.env["XDG_RUNTIME_DIR"] = folder;
  file = joinPath(folder, "agent.db");
  writeFileSync(file, "");
});

afterEach(() => {
  for (const close of closing.splice(0)) close();
  if (runtimeFolder === undefined) delete process.env["XDG_RUNTIME_DIR"];
  else process.env["XDG_RUNTIME_DIR"] = runtimeFolder;
  rmSync(folder, { recursive: true });
});

function openRelay(options: { readonly codec?: Codec } = {}): SocketRelay {
  const relay = socketRelay(file, options);
  closing.push(() => relay.close());
  return relay;
}

/** Frames of one run: deltas with these texts. */
function createFrames(texts: readonly string[], from = 1): readonly RelayFrame[] {
  return texts.map((text, nth) => ({
    ...{ source: "run_a.1", run: "run_a", branch: "main", epoch: 1, index: from + nth, seq: 2 },
    event: {
      ...{ type: "message.delta", kind: "text", messageId: "m", node: "ask", task: "0:0", text },
      ...{ seq: 2, at: 0, branch: "main" },
    },
  }));
}

/** What a subscriber has received, and a promise of its next change. */
function record(relay: SocketRelay, thread = "t") {
  const received: (RelayFrame | RelayGap)[] = [];
  const waiting = new Set<() => void>();
  const unsubscribe = relay.subscribe(thread, (each) => {
    received.push(each);
    for (const check of waiting) check();
  });
  const listFrames = (): readonly RelayFrame[] => received.filter((each): each is RelayFrame => "index" in each);
  return {
    received,
    listFrames,
    unsubscribe,
    waitUntil: (isReached: () => boolean): Promise<void> =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!isReached()) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
  };
}

/** Records a subscriber that has joined the publisher of the thread "t". */
async function joinPublisher(relay: SocketRelay, thread = "t") {
  const reader = record(relay, thread);
  await expect.poll(() => relay.snapshot("t")).toBeDefined();
  return reader;
}

const place = (temporaryFolder: string, more: Partial<RelayPlace> = {}): RelayPlace => ({
  platform: "linux",
  runtimeFolder: undefined,
  temporaryFolder,
  uid: process.getuid?.(),
  ...more,
});

test("the folder of the sockets is private, named by device and inode, and never beside the file [SE6]", () => {
  const base = mkdtempSync(joinPath(folder, "tmp-"));
  const address = openRelayFolder(file, place(base)).createAddress("p-1").foundAt;
  const sockets = joinPath(address, "..");
  expect(statSync(sockets).mode & 0o777).toBe(0o700);
  expect(statSync(joinPath(sockets, "..")).mode & 0o777).toBe(0o700);
  expect(address.startsWith(joinPath(base, `statewright-${process.getuid?.()}`))).toBe(true);
  symlinkSync(file, joinPath(folder, "link.db"));
  expect(openRelayFolder(joinPath(folder, "link.db"), place(base)).createAddress("p-1").foundAt).toBe(address);
  writeFileSync(joinPath(folder, "other.db"), "");
  expect(openRelayFolder(joinPath(folder, "other.db"), place(base)).createAddress("p-1").foundAt).not.toBe(address);
  const session = openRelayFolder(file, place(base, { runtimeFolder: folder })).createAddress("p-1").foundAt;
  expect(session.startsWith(joinPath(folder, "statewright"))).toBe(true);
});

test("a folder of another user, an open folder and a link are refused [SE6]", () => {
  const uid = process.getuid?.() ?? 0;
  const open = (base: string, more?: Partial<RelayPlace>) => () => openRelayFolder(file, place(base, more));
  const foreign = mkdtempSync(joinPath(folder, "tmp-"));
  mkdirSync(joinPath(foreign, `statewright-${uid + 1}`), { mode: 0o700 });
  expect(open(foreign, { uid: uid + 1 })).toThrow(/only this user can enter, got a folder of the user/);
  const readable = mkdtempSync(joinPath(folder, "tmp-"));
  mkdirSync(joinPath(readable, `statewright-${uid}`));
  chmodSync(joinPath(readable, `statewright-${uid}`), 0o750);
  expect(open(readable)).toThrow(/got a folder with the mode 750/);
  const linked = mkdtempSync(joinPath(folder, "tmp-"));
  symlinkSync(foreign, joinPath(linked, `statewright-${uid}`));
  expect(open(linked)).toThrow(/got no folder/);
  expect(open(joinPath(folder, "absent"))).toThrow(/got ENOENT when it was created/);
});

test("a file that does not exist and a store in memory are refused, with the way out [SE6]", () => {
  expect(() => socketRelay(undefined as never)).toThrow(/invalid_option.*the path of a database file, got undefined/);
  expect(() => socketRelay(joinPath(folder, "absent.db"))).toThrow(/store_missing.*Call sqliteStore\(path\) first/);
  expect(() => socketRelay(":memory:")).toThrow(/Use memoryRelay\(\)/);
  expect(() => socketRelay(file, { wrong: 1 } as never)).toThrow(/"wrong"/);
});

test("a temporary folder whose path is too long for a socket is not used [SE6]", () => {
  const long = joinPath(folder, "x".repeat(90));
  mkdirSync(long);
  const { foundAt } = openRelayFolder(file, place(long)).createAddress("p-1");
  expect(foundAt.startsWith(joinPath("/tmp", `statewright-${process.getuid?.()}`))).toBe(true);
  expect(Buffer.byteLength(foundAt)).toBeLessThan(104);
  rmSync(joinPath(foundAt, ".."), { recursive: true });
});

test("named pipes of Windows carry the hash of the file in their names", () => {
  const { listensAt, foundAt } = openRelayFolder(file, place("", { platform: "win32" })).createAddress("p-1");
  expect(foundAt).toMatch(/^\\\\\.\\pipe\\statewright-[0-9a-f]{16}-p-1$/);
  expect(listensAt).toBe(foundAt);
});

test("a frame is encoded once for all readers of its thread, and not at all without one [SE6]", async () => {
  let frames = 0;
  const counting: Codec = {
    encode: (value, what) => {
      if (typeof value === "object" && value !== null && "frame" in value) frames += 1;
      return codec.encode(value, what);
    },
    decode: codec.decode,
  };
  const publisher = openRelay({ codec: counting });
  publisher.publish("t", createFrames(["a", "b"]));
  expect(frames).toBe(0);
  const one = await joinPublisher(openRelay());
  const two = await joinPublisher(openRelay());
  const other = await joinPublisher(openRelay(), "u");
  publisher.publish("t", createFrames(["c"], 3));
  await one.waitUntil(() => one.listFrames().length > 0);
  await two.waitUntil(() => two.listFrames().length > 0);
  expect([frames, one.listFrames(), other.listFrames()]).toEqual([1, two.listFrames(), []]);
});

test("a reader that connects gets the open words of the publisher as a snapshot, with Dates and other built-in types [SE6]", async () => {
  const publisher = openRelay();
  publisher.publish("t", createFrames(["Hello ", "you"]));
  const at = new Date(0);
  const [frame] = createFrames([""], 3);
  const event = {
    ...frame?.event,
    type: "tool.update",
    callId: "c",
    tool: "clock",
    partial: { content: "now", details: { at } },
  };
  publisher.publish("t", [{ ...frame, event } as RelayFrame]);
  const reader = openRelay();
  reader.subscribe("t", () => undefined);
  await expect.poll(() => reader.snapshot("t")).toMatchObject({ index: 3, seq: 2 });
  const snapshot = await reader.snapshot("t");
  expect(snapshot?.open.messages).toMatchObject([{ id: "m", text: "Hello you" }]);
  expect(snapshot?.open.tools[0]?.update).toEqual({ content: "now", details: { at } });
  expect(await reader.snapshot("u")).toBeUndefined();
});

test("an event that cannot be sent is reported as dropped, and the frames after it arrive [SE6]", async () => {
  const publisher = openRelay();
  publisher.publish("t", createFrames(["a"]));
  const reader = await joinPublisher(openRelay());
  const [frame] = createFrames([""], 2);
  const event = { ...frame?.event, type: "custom", name: "x", payload: () => "a function" };
  publisher.publish("t", [{ ...frame, event } as RelayFrame, ...createFrames(["b"], 3)]);
  await reader.waitUntil(() => reader.listFrames().length === 2);
  expect(reader.listFrames().map((each) => each.event?.type)).toEqual(["events.dropped", "message.delta"]);
});

function getAddress(): string {
  const base = joinPath(folder, "statewright");
  const sockets = readdirSync(base).flatMap((key) =>
    readdirSync(joinPath(base, key)).map((name) => joinPath(base, key, name)),
  );
  const found = sockets.find((path) => path.endsWith(".sock"));
  if (found === undefined) throw new Error("no process listens");
  return found;
}

/** Connects to the only publisher without a relay. */
async function connectRaw(): Promise<Socket> {
  await expect.poll(getAddress).toMatch(/sock$/);
  const socket = connect(getAddress());
  closing.push(() => socket.destroy());
  await new Promise((resolve) => socket.once("connect", resolve));
  return socket;
}

function encode(message: unknown): Buffer {
  return encodeMessage(codec, message as never) ?? Buffer.alloc(0);
}

test("a malformed, an unknown and an oversized message end the connection of their sender, and nothing else [SE6]", async () => {
  const publisher = openRelay();
  publisher.publish("t", createFrames(["a"]));
  const reader = await joinPublisher(openRelay());
  const oversized = Buffer.alloc(4);
  oversized.writeUInt32BE(70_000);
  const malformed = Buffer.concat([Buffer.from([0, 0, 0, 3]), Buffer.from("{}}")]);
  for (const bytes of [malformed, encode({ unknown: 1 }), encode(["list"]), oversized, Buffer.alloc(8, 255)]) {
    const socket = await connectRaw();
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => undefined);
    socket.write(bytes);
    socket.resume();
    await closed;
  }
  publisher.publish("t", createFrames(["b"], 2));
  await reader.waitUntil(() => reader.listFrames().length === 1);
});

test("a publisher that sends garbage, or another version, is left alone, and its socket is not removed [SE6]", async () => {
  const relay = openRelay();
  relay.publish("t", createFrames(["a"]));
  await expect.poll(getAddress).toMatch(/sock$/);
  const servers: Server[] = [];
  const answers = [
    Buffer.from("not a message at all"),
    encode({ version: 99 }),
    encode({ thread: "t", frame: { index: "x" } }),
  ];
  let connections = 0;
  for (const [nth, bytes] of answers.entries()) {
    const server = createServer((socket) => {
      connections += 1;
      socket.on("error", () => undefined);
      socket.write(bytes);
    });
    await new Promise<void>((resolve) => server.listen(getAddress().replace(/[^/]*$/, `foreign-${nth}.sock`), resolve));
    servers.push(server);
  }
  closing.push(() => {
    for (const server of servers) server.close();
  });
  const other = openRelay();
  const reader = record(other);
  await expect.poll(() => other.snapshot("t")).toMatchObject({ index: 1 });
  relay.publish("t", createFrames(["b"], 2));
  await reader.waitUntil(() => reader.listFrames().length > 0);
  await other.snapshot("t");
  expect(connections).toBe(3);
  expect(readdirSync(joinPath(getAddress(), "..")).filter((name) => name.startsWith("foreign"))).toHaveLength(3);
});

test("the socket of a dead process is removed by the next reader [SE6]", async () => {
  const relay = openRelay();
  relay.publish("t", createFrames(["a"]));
  await expect.poll(getAddress).toMatch(/sock$/);
  const dead = joinPath(getAddress(), "..", "dead-1.sock");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(`${dead}.new`, resolve));
  renameSync(`${dead}.new`, dead);
  await new Promise((resolve) => server.close(resolve));
  expect(readdirSync(joinPath(dead, ".."))).toContain("dead-1.sock");
  const other = openRelay();
  expect(await other.snapshot("t")).toMatchObject({ index: 1 });
  expect(readdirSync(joinPath(dead, ".."))).not.toContain("dead-1.sock");
});

test("a reader that does not read costs bounded memory, and is told that frames are missing when it reads [SE6]", async () => {
  const publisher = openRelay();
  publisher.publish("t", createFrames(["a"]));
  const socket = await connectRaw();
  const messages = createMessageReader(codec, 1 << 24);
  socket.write(encode({ subscribe: "t" }));
  socket.write(encode({ snapshot: "t", request: 1 }));
  await new Promise<void>((resolve) => {
    socket.on("data", (bytes: Buffer) => {
      for (const message of messages.read(bytes)) if (message instanceof Object && "answer" in message) resolve();
    });
  });
  socket.removeAllListeners("data");
  socket.pause();
  const text = "x".repeat(10_000);
  const before = process.memoryUsage().arrayBuffers;
  for (let index = 2; index <= 5_002; index++) publisher.publish("t", createFrames([text], index));
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * 1024 * 1024);
  const indices: number[] = [];
  await new Promise<void>((resolve) => {
    socket.on("data", (bytes: Buffer) => {
      for (const message of messages.read(bytes) as readonly {
        readonly frame?: RelayFrame;
        readonly missing?: string;
      }[]) {
        if (message.frame !== undefined) indices.push(message.frame.index);
        if (message.missing === "t") resolve();
      }
    });
    socket.resume();
  });
  expect(indices).toEqual(indices.map((_, nth) => nth + 2));
  expect(indices.length).toBeGreaterThan(10);
  expect(indices.length).toBeLessThan(2_000);
});

test("a closed relay serves its own process, and leaves no socket, connection or timer behind [SE6]", async () => {
  const countPipes = (): number => process.getActiveResourcesInfo().filter((name) => name === "PipeWrap").length;
  const pipes = countPipes();
  const [publisher, other] = [openRelay(), openRelay()];
  publisher.publish("t", createFrames(["a"]));
  const reader = await joinPublisher(other);
  const socket = getAddress();
  publisher.close();
  await reader.waitUntil(() => reader.received.some((each) => "missing" in each));
  expect(readdirSync(joinPath(socket, ".."))).toEqual([]);
  expect(await other.snapshot("t")).toBeUndefined();
  const own = record(publisher);
  publisher.publish("t", createFrames(["b"], 2));
  expect(own.listFrames()).toHaveLength(1);
  reader.unsubscribe();
  own.unsubscribe();
  await expect.poll(countPipes).toBeLessThanOrEqual(pipes);
});

test("a process is reachable from the start of its engine on, before its first run [SE6]", async () => {
  const relay = openRelay();
  const host = engine({ store: memoryStore(), graphs: [], relay });
  await host.start();
  await expect.poll(getAddress).toMatch(/sock$/);
  await host.stop();
  relay.close();
  expect(getAddress).toThrow();
});
