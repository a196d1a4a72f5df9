/** Listens for readers in other processes, and sends them the frames of the threads that they subscribed. */
import { renameSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import process from "node:process";
import type { RelayFrame, RelaySnapshot, World } from "@statewright/core";
import type { Codec } from "@statewright/core/store";
import type { RelayFolder } from "./relay-folder.ts";
import {
  createMessageReader,
  encodeFrame,
  encodeMessage,
  maxRequestBytes,
  parseReaderMessage,
  protocolVersion,
  type ReaderMessage,
} from "./relay-messages.ts";

/** Bytes that wait for a slow reader. Above, its frames are dropped and it is told to ask for the snapshot. */
const maxWaitingBytes: number = 4 * 1024 * 1024;

/** Limits per process and per reader. */
const maxReaders = 256;
const maxThreadsPerReader = 10_000;

export interface PublisherServer {
  /** Sends a frame to the readers of its thread. Without a reader it encodes nothing. */
  publish(thread: string, frame: RelayFrame): void;
  close(): void;
}

interface ServerOptions {
  readonly folder: RelayFolder;
  readonly codec: Codec;
  readonly world: World;
  /** Id of this process among those of the file. */
  readonly id: string;
  readonly loadSnapshot: (thread: string) => Promise<RelaySnapshot | undefined>;
}

/** Starts to listen. A failure is logged: text then arrives with its commit. */
export function startPublisherServer({ folder, codec, world, id, loadSnapshot }: ServerOptions): PublisherServer {
  const readers = new Set<Reader>();
  const { listensAt, foundAt } = folder.createAddress(id);
  const server = createServer((socket) => {
    const reader = new Reader(socket, codec, loadSnapshot);
    readers.add(reader);
    socket.once("close", () => readers.delete(reader));
  });
  server.maxConnections = maxReaders;
  const removeSocket = (): void => folder.remove(foundAt);
  const stop = (): void => {
    socketsOfProcess.delete(removeSocket);
    if (socketsOfProcess.size === 0) process.removeListener("exit", removeSockets);
    closeServer(server);
    removeSocket();
  };
  server.on("error", (error) => {
    world.log("warn", "the relay cannot listen; readers of other processes receive text with its commit", { error });
    stop();
  });
  // A socket between its creation and `listen` refuses connections like that of a dead process: it gets its name last.
  server.listen({ path: listensAt, exclusive: true }, () => {
    if (listensAt !== foundAt) renameSync(listensAt, foundAt);
  });
  server.unref();
  if (socketsOfProcess.size === 0) process.once("exit", removeSockets);
  socketsOfProcess.add(removeSocket);
  return {
    publish: (thread, frame) => {
      let bytes: Buffer | undefined;
      for (const reader of readers) {
        if (!reader.threads.has(thread)) continue;
        bytes ??= encodeFrame(codec, thread, frame);
        reader.send(thread, bytes);
      }
    },
    close: () => {
      for (const reader of readers) reader.close();
      stop();
    },
  };
}

/** Removes the sockets of this process at its exit. */
const socketsOfProcess = new Set<() => void>();

function removeSockets(): void {
  for (const removeSocket of socketsOfProcess) removeSocket();
}

function closeServer(server: Server): void {
  if (server.listening) server.close();
}

/** Connection of a reader. A malformed message ends it. */
class Reader {
  readonly threads = new Set<string>();
  readonly #socket: Socket;
  readonly #codec: Codec;
  readonly #loadSnapshot: ServerOptions["loadSnapshot"];
  /** Threads of dropped frames. */
  readonly #missing = new Set<string>();

  constructor(socket: Socket, codec: Codec, loadSnapshot: ServerOptions["loadSnapshot"]) {
    this.#socket = socket;
    this.#codec = codec;
    this.#loadSnapshot = loadSnapshot;
    const messages = createMessageReader(codec, maxRequestBytes);
    socket.unref();
    socket.on("error", () => socket.destroy());
    socket.on("drain", () => this.#reportMissing());
    socket.on("data", (bytes) => {
      try {
        for (const value of messages.read(bytes)) this.#receive(parseReaderMessage(value));
      } catch {
        socket.destroy();
      }
    });
    const hello = encodeMessage(codec, { version: protocolVersion });
    if (hello !== undefined) socket.write(hello);
  }

  send(thread: string, bytes: Buffer | undefined): void {
    if (bytes === undefined || this.#socket.writableLength > maxWaitingBytes) {
      this.#missing.add(thread);
      if (bytes === undefined) this.#reportMissing();
    } else this.#write(bytes);
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(message: ReaderMessage | undefined): void {
    if (message === undefined || this.threads.size > maxThreadsPerReader) this.#socket.destroy();
    else if ("subscribe" in message) this.threads.add(message.subscribe);
    else if ("unsubscribe" in message) this.threads.delete(message.unsubscribe);
    else void this.#answer(message.request, message.snapshot);
  }

  async #answer(request: number, thread: string): Promise<void> {
    const snapshot = (await this.#loadSnapshot(thread)) ?? null;
    const bytes =
      encodeMessage(this.#codec, { answer: request, snapshot }) ??
      encodeMessage(this.#codec, { answer: request, snapshot: null });
    // A reader that asks and does not read is cut off.
    if (this.#socket.writableLength > 4 * maxWaitingBytes) this.#socket.destroy();
    else if (bytes !== undefined) this.#write(bytes);
  }

  #reportMissing(): void {
    for (const thread of this.#missing) {
      const bytes = encodeMessage(this.#codec, { missing: thread });
      if (bytes !== undefined) this.#write(bytes);
    }
    this.#missing.clear();
  }

  /** Joins the messages of a turn of the event loop into a single write. */
  #write(bytes: Buffer): void {
    if (this.#socket.destroyed) return;
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork();
      process.nextTick(() => this.#socket.uncork());
    }
    this.#socket.write(bytes);
  }
}
