/** Connections of readers that break at random moments, also in the middle of a frame. */
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import {
  channel,
  defineGraph,
  defineState,
  END,
  type Model,
  type ModelReply,
  memoryStore,
  run,
  START,
  userMessage,
} from "@statewright/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type SocketRelay, socketRelay } from "../../src/index.ts";
import { watchThread } from "../support/thread-watcher.ts";

let folder: string;
const closing: (() => void)[] = [];
const runtimeFolder = process.env["XDG_RUNTIME_DIR"];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "cuts-"));
  process.env["XDG_RUNTIME_DIR"] = folder;
  writeFileSync(join(folder, "agent.db"), "");
});

afterEach(() => {
  for (const close of closing.splice(0)) close();
  if (runtimeFolder === undefined) delete process.env["XDG_RUNTIME_DIR"];
  else process.env["XDG_RUNTIME_DIR"] = runtimeFolder;
  rmSync(folder, { recursive: true });
});

function openRelay(): SocketRelay {
  const relay = socketRelay(join(folder, "agent.db"));
  closing.push(() => relay.close());
  return relay;
}

/** A connection between every reader and the publisher that a test can cut. */
interface CuttableLine {
  /** Cuts all connections; with `afterBytes` when so many more bytes have passed. */
  readonly cut: (afterBytes?: number) => void;
}

/** Puts a line in the place of the only socket. */
async function putLine(): Promise<CuttableLine> {
  const base = join(folder, "statewright");
  const findSocket = (): string | undefined =>
    readdirSync(base)
      .flatMap((key) => readdirSync(join(base, key)).map((name) => join(base, key, name)))
      .find((path) => path.endsWith(".sock"));
  await expect.poll(findSocket).toBeDefined();
  const address = findSocket() ?? "";
  renameSync(address, `${address}.behind`);
  const sockets = new Set<Socket>();
  let bytesLeft = Number.POSITIVE_INFINITY;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
    bytesLeft = Number.POSITIVE_INFINITY;
  };
  const server: Server = createServer((reader) => {
    const publisher = connect(`${address}.behind`);
    for (const socket of [reader, publisher]) {
      sockets.add(socket);
      socket.on("error", () => socket.destroy());
    }
    reader.pipe(publisher);
    reader.on("close", () => publisher.destroy());
    publisher.on("close", () => reader.destroy());
    publisher.on("data", (bytes: Buffer) => {
      if (reader.destroyed) return;
      reader.write(bytes.subarray(0, Math.min(bytes.length, bytesLeft)));
      bytesLeft -= bytes.length;
      if (bytesLeft <= 0) setImmediate(cut);
    });
  });
  await new Promise<void>((resolve) => server.listen(address, resolve));
  closing.push(() => {
    cut();
    server.close();
  });
  return {
    cut: (afterBytes) => {
      if (afterBytes === undefined) cut();
      else bytesLeft = afterBytes;
    },
  };
}

/** Creates seeded random numbers in [0, 1). */
function createRandom(seed: number): () => number {
  let chance = seed * 7_919;
  return () => {
    chance = (chance * 48_271) % 2_147_483_647;
    return chance / 2_147_483_647;
  };
}

test("a reader whose connection breaks at random moments, also within a frame, sees every word once [SE6]", async () => {
  for (let seed = 1; seed <= 12; seed++) {
    const random = createRandom(seed);
    const store = memoryStore();
    const [publisher, readers] = [openRelay(), openRelay()];
    let say: (text: string) => void = () => undefined;
    let finish: () => void = () => undefined;
    const said: string[] = [];
    let reportRequest: () => void = () => undefined;
    const requested = new Promise<void>((resolve) => {
      reportRequest = resolve;
    });
    const model: Model = {
      id: "talker",
      respond: (_request, { delta }) =>
        new Promise<ModelReply>((resolve) => {
          say = (text) => {
            said.push(text);
            delta?.({ type: "text", text });
          };
          finish = () => resolve({ content: [{ type: "text", text: said.join("") }], finish: "stop" });
          reportRequest();
        }),
    };
    const graph = defineGraph({ name: "talk", state: defineState({ messages: channel.messages() }) })
      .nodes({
        answer: async ({ messages }, runtime) => ({
          messages: [await runtime.model({ model, request: { messages, tools: [] } })],
        }),
      })
      .edges({ [START]: "answer", answer: END });
    const { result } = run(graph, {
      ...{ store, relay: publisher, thread: "t" },
      input: { messages: [userMessage("?")] },
    });
    await requested;
    const line = await putLine();
    const shown: string[] = [];
    const watcher = watchThread(store, { thread: "t", relay: readers, onText: (text) => shown.push(text) });
    for (let word = 0; word < 30; word++) {
      const chance = random();
      if (chance < 0.1) line.cut();
      else if (chance < 0.3) line.cut(Math.floor(random() * 400));
      say(`word${word} `);
      if (random() < 0.5) await watcher.waitForText(said.join(""));
    }
    finish();
    await result;
    await watcher.waitForEvent("run.completed");
    const text = said.join("");
    expect(watcher.getText(), `seed ${seed}`).toBe(text);
    expect(shown.filter((each) => !text.startsWith(each))).toEqual([]);
    await watcher.stop();
    for (const close of closing.splice(0).toReversed()) close();
  }
});
