/** Relay between the processes of a host that share a database file. */
import { randomBytes } from "node:crypto";
import process from "node:process";
import type { Relay, RelayFrame, RelayGap, RelaySnapshot, World } from "@statewright/core";
import { checkOptions, listOptionNames, systemWorld } from "@statewright/core/adapter";
import { type Codec, createCodec, memoryRelay } from "@statewright/core/store";
import { connectToPublisher, type PublisherConnection } from "./publisher-connection.ts";
import { type PublisherServer, startPublisherServer } from "./publisher-server.ts";
import { getRelayPlace, openRelayFolder, type RelayFolder } from "./relay-folder.ts";

/** Options of `socketRelay`. */
export interface SocketRelayOptions {
  /** Codec of values other than plain data, as in the runs. Default: plain data and built-in types. */
  readonly codec?: Codec;
  /** Timers and log. Default: the system world. */
  readonly world?: World;
}

/** Relay of `socketRelay`. */
export interface SocketRelay extends Relay {
  /** Closes all connections. Afterwards the relay serves this process only. */
  close(): void;
}

const optionNames = listOptionNames<SocketRelayOptions>({ codec: true, world: true });

/** Interval in milliseconds of the search for new processes, beside notifications of the file system. */
const searchMs = 1_000;

/**
 * Creates a relay between the processes of one user on one host that use the database file at `path`, which must exist.
 * A process that publishes listens on a Unix socket below `XDG_RUNTIME_DIR` or the temporary folder, or on a named pipe
 * on Windows; readers connect to each of them. Keeps no process alive. Throws `store_missing` without the file,
 * `invalid_option`, and `store_failed` for a folder of sockets that another user owns or can enter.
 *
 * @example
 * const store = sqliteStore("agent.db");
 * const relay = socketRelay("agent.db");
 * const host = engine({ store, graphs: [chat], relay });
 * await host.start();
 */
export function socketRelay(path: string, options: SocketRelayOptions = {}): SocketRelay {
  checkOptions("socketRelay", options, optionNames);
  const { codec = createCodec([]), world = systemWorld() } = options;
  return new FileRelay(openRelayFolder(path, getRelayPlace()), codec, world);
}

type Listener = (received: RelayFrame | RelayGap) => void;

class FileRelay implements SocketRelay {
  readonly #folder: RelayFolder;
  readonly #codec: Codec;
  readonly #world: World;
  readonly #id = `${process.pid.toString(36)}-${randomBytes(4).toString("hex")}`;
  /** Carries the frames of this process, and knows what is open in its runs. */
  readonly #local = memoryRelay();
  readonly #connections = new Map<string, PublisherConnection>();
  readonly #listeners = new Map<string, Set<Listener>>();
  /** Addresses of processes that speak another version. */
  readonly #foreign = new Set<string>();
  #server: PublisherServer | undefined;
  #stopSearching: (() => void) | undefined;
  #isClosed = false;
  /** Calls that use the connections now. */
  #uses = 0;

  constructor(folder: RelayFolder, codec: Codec, world: World) {
    this.#folder = folder;
    this.#codec = codec;
    this.#world = world;
  }

  publish(thread: string, frames: readonly RelayFrame[]): void {
    this.#local.publish(thread, frames);
    this.prepare();
    for (const frame of frames) this.#server?.publish(thread, frame);
  }

  prepare(): void {
    if (!this.#isClosed) this.#server ??= this.#startServer();
  }

  subscribe(thread: string, listener: Listener): () => void {
    const unsubscribeLocal = this.#local.subscribe(thread, listener);
    const listeners = this.#listeners.get(thread) ?? new Set();
    this.#listeners.set(thread, listeners.add(listener));
    if (listeners.size === 1) for (const connection of this.#connections.values()) connection.subscribe(thread);
    this.#search();
    this.#stopSearching ??= this.#startSearching();
    return () => {
      unsubscribeLocal();
      listeners.delete(listener);
      if (listeners.size > 0 || this.#listeners.get(thread) !== listeners) return;
      this.#listeners.delete(thread);
      for (const connection of this.#connections.values()) connection.unsubscribe(thread);
      this.#disconnectIfIdle();
    };
  }

  async snapshot(thread: string): Promise<RelaySnapshot | undefined> {
    this.#search();
    const loaded = await this.#use((connection) => connection.loadSnapshot(thread));
    loaded.push(await this.#local.snapshot(thread));
    const found = loaded.filter((snapshot) => snapshot !== undefined);
    return found.toSorted((one, other) => other.epoch - one.epoch)[0];
  }

  close(): void {
    this.#isClosed = true;
    this.#server?.close();
    this.#server = undefined;
    this.#disconnect();
  }

  #startServer(): PublisherServer {
    // Removes sockets of processes that died without a reader.
    this.#search();
    void this.#use(({ ready }) => ready);
    const { snapshot } = this.#local;
    const { id, folder, codec, world } = { id: this.#id, folder: this.#folder, codec: this.#codec, world: this.#world };
    return startPublisherServer({ id, folder, codec, world, loadSnapshot: snapshot });
  }

  /** Connects to the processes that are not connected yet. */
  #search(): void {
    if (this.#isClosed) return;
    const own = this.#folder.createAddress(this.#id).foundAt;
    for (const address of this.#folder.list())
      if (address !== own && !this.#connections.has(address) && !this.#foreign.has(address)) this.#connect(address);
  }

  #connect(address: string): void {
    const connection = connectToPublisher({
      ...{ address, codec: this.#codec, world: this.#world },
      onReceived: (thread, received) => this.#notify(thread, received),
      onOpen: () => {
        for (const thread of this.#listeners.keys()) connection.subscribe(thread);
        // The process may have published before.
        this.#notifyAll();
      },
      onEnd: (end) => {
        if (end === "dead") this.#folder.remove(address);
        if (end === "foreign") this.#foreign.add(address);
        // A connection that this relay closed is no longer listed.
        if (this.#connections.get(address) !== connection) return;
        this.#connections.delete(address);
        if (end !== "dead") this.#notifyAll();
      },
    });
    this.#connections.set(address, connection);
  }

  #notifyAll(): void {
    for (const thread of this.#listeners.keys()) this.#notify(thread, { missing: true });
  }

  #notify(thread: string, received: RelayFrame | RelayGap): void {
    for (const listener of this.#listeners.get(thread) ?? []) listener(received);
  }

  #startSearching(): () => void {
    const search = (): void => this.#search();
    const stopWatching = this.#folder.watch(search);
    const repeat = (): (() => void) =>
      this.#world.schedule.after(searchMs, () => {
        search();
        cancel = repeat();
      });
    let cancel = repeat();
    return () => {
      stopWatching();
      cancel();
    };
  }

  /** Calls `work` for each connection; connections that no reader needs are closed afterwards. */
  async #use<Value>(work: (connection: PublisherConnection) => Promise<Value>): Promise<Value[]> {
    this.#uses += 1;
    try {
      return await Promise.all([...this.#connections.values()].map(work));
    } finally {
      this.#uses -= 1;
      this.#disconnectIfIdle();
    }
  }

  #disconnectIfIdle(): void {
    if (this.#listeners.size === 0 && this.#uses === 0) this.#disconnect();
  }

  #disconnect(): void {
    this.#stopSearching?.();
    this.#stopSearching = undefined;
    for (const connection of this.#connections.values()) connection.close();
    this.#connections.clear();
  }
}
