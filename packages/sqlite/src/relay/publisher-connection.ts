/** Connection of a reader to the relay of one other process. */
import { connect, type Socket } from "node:net";
import type { RelayFrame, RelayGap, RelaySnapshot, World } from "@statewright/core";
import type { Codec } from "@statewright/core/store";
import { getErrorCode } from "../driver/sqlite-code.ts";
import {
  createMessageReader,
  encodeMessage,
  maxMessageBytes,
  type PublisherMessage,
  parsePublisherMessage,
  protocolVersion,
  type ReaderMessage,
} from "./relay-messages.ts";

/** Time in milliseconds in which a process answers; then its text arrives with its commit. */
const answerMs = 2_000;

export interface PublisherConnection {
  /** Resolves when the process has accepted the connection, or cannot. */
  readonly ready: Promise<void>;
  subscribe(thread: string): void;
  unsubscribe(thread: string): void;
  loadSnapshot(thread: string): Promise<RelaySnapshot | undefined>;
  close(): void;
}

interface ConnectionOptions {
  readonly address: string;
  readonly codec: Codec;
  readonly world: World;
  readonly onReceived: (thread: string, received: RelayFrame | RelayGap) => void;
  /** Called once when the connection is open. */
  readonly onOpen: () => void;
  /** Called once at its end. */
  readonly onEnd: (end: ConnectionEnd) => void;
}

/** `dead`: the socket of a process that no longer exists. `foreign`: a process that speaks another version. */
export type ConnectionEnd = "closed" | "dead" | "foreign";

/** Connects to a process. */
export function connectToPublisher(options: ConnectionOptions): PublisherConnection {
  return new Connection(options);
}

class Connection implements PublisherConnection {
  readonly ready: Promise<void>;
  readonly #socket: Socket;
  readonly #options: ConnectionOptions;
  readonly #answers = new Map<number, (snapshot: RelaySnapshot | undefined) => void>();
  #lastRequest = 0;
  #end: ConnectionEnd = "closed";
  #isReady: () => void = () => undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.ready = new Promise((resolve) => {
      this.#isReady = resolve;
    });
    const socket = connect(options.address);
    this.#socket = socket;
    const messages = createMessageReader(options.codec, maxMessageBytes);
    socket.unref();
    socket.on("error", (error) => {
      if (getErrorCode(error) === "ECONNREFUSED") this.#end = "dead";
    });
    socket.on("data", (bytes) => {
      try {
        for (const value of messages.read(bytes)) this.#receive(parsePublisherMessage(value));
      } catch {
        this.#destroy("foreign");
      }
    });
    socket.once("close", () => {
      for (const answer of this.#answers.values()) answer(undefined);
      this.#answers.clear();
      this.#isReady();
      options.onEnd(this.#end);
    });
  }

  subscribe(thread: string): void {
    this.#send({ subscribe: thread });
  }

  unsubscribe(thread: string): void {
    this.#send({ unsubscribe: thread });
  }

  async loadSnapshot(thread: string): Promise<RelaySnapshot | undefined> {
    await this.ready;
    if (this.#socket.destroyed) return undefined;
    this.#lastRequest += 1;
    const request = this.#lastRequest;
    return new Promise((resolve) => {
      const cancel = this.#options.world.schedule.after(answerMs, () => this.#answers.get(request)?.(undefined));
      this.#answers.set(request, (snapshot) => {
        this.#answers.delete(request);
        cancel();
        resolve(snapshot);
      });
      this.#send({ snapshot: thread, request });
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #destroy(end: ConnectionEnd): void {
    this.#end = end;
    this.#socket.destroy();
  }

  #send(message: ReaderMessage): void {
    const bytes = encodeMessage(this.#options.codec, message);
    if (bytes !== undefined && !this.#socket.destroyed) this.#socket.write(bytes);
  }

  #receive(message: PublisherMessage | undefined): void {
    const { onReceived, onOpen } = this.#options;
    if (message === undefined) this.#destroy("foreign");
    else if ("version" in message) {
      if (message.version !== protocolVersion) this.#destroy("foreign");
      else onOpen();
      this.#isReady();
    } else if ("missing" in message) onReceived(message.missing, { missing: true });
    else if ("answer" in message) this.#answers.get(message.answer)?.(message.snapshot ?? undefined);
    else onReceived(message.thread, message.frame);
  }
}
