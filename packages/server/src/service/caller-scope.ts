/** Reach of a caller through a protocol: threads, runs, graphs and rights. */
import type { EngineOptions, Graph, Store, World } from "@statewright/core";
import { getEngineOptions, systemWorld } from "@statewright/core/adapter";
import { type Codec, plainCodec, type RunRow, type ThreadRow } from "@statewright/core/store";
import type { AccessRequest, Caller } from "../access/caller.ts";
import type { ServiceOptions } from "./service-options.ts";
import { createForbiddenProblem, createReadOnlyProblem, createUnknownGraphProblem } from "./service-problems.ts";
import {
  checkCaller,
  checkWireId,
  createThreadPrefix,
  createUnknownRunError,
  createUnknownThreadError,
} from "./thread-ids.ts";

/** Thread of a caller. */
export interface OwnThread {
  /** Id as the caller knows it. */
  readonly wire: string;
  /** Id in the store. */
  readonly stored: string;
  readonly row: ThreadRow;
}

/** Right to ask for, with what the caller wants to do. */
export interface AskedAccess extends AccessRequest {
  /** True for an act that changes something; a server with the role `readOnly` refuses it. */
  readonly changes?: boolean;
}

/** Reach of a caller: everything that the acts share. */
export class CallerScope {
  readonly options: ServiceOptions;
  readonly engine: EngineOptions;
  readonly caller: Caller;
  readonly protocol: string;
  readonly store: Store;
  readonly codec: Codec;
  readonly world: World;
  readonly #prefix: string;

  /** Throws `invalid_option` for a caller outside of the grammar. */
  constructor(options: ServiceOptions, caller: Caller, protocol: string) {
    checkCaller(caller);
    this.options = options;
    this.engine = getEngineOptions(options.engine);
    this.caller = caller;
    this.protocol = protocol;
    this.store = this.engine.store;
    this.codec = this.engine.codec ?? plainCodec;
    this.world = this.engine.world ?? systemWorld();
    this.#prefix = createThreadPrefix(caller, options.scope ?? "tenant");
  }

  /** Filter of the rows of this caller by their columns. */
  get columns(): { readonly tenant: string; readonly owner?: string } {
    const { tenant, id } = this.caller;
    return this.options.scope === "caller" ? { tenant, owner: id } : { tenant };
  }

  /** Identity of the tenant in cursors. */
  get party(): string {
    return this.#prefix;
  }

  /** Returns the id of a thread in the store. Throws `invalid_id`. */
  toStoredId(thread: string): string {
    return this.#prefix + checkWireId("thread", thread);
  }

  /** Returns the id of a thread as the caller knows it. */
  toWireId(stored: string): string {
    return stored.startsWith(this.#prefix) ? stored.slice(this.#prefix.length) : stored;
  }

  /** Returns a text without the prefix of stored ids. */
  removePrefix(text: string): string {
    return text.replaceAll(this.#prefix, "");
  }

  /**
   * Returns true for a row of this caller. A row whose columns differ from the prefix of its id belongs to no caller.
   */
  owns({ id, tenant, owner }: Pick<ThreadRow, "id" | "tenant" | "owner">): boolean {
    if (!id.startsWith(this.#prefix) || tenant !== this.caller.tenant) return false;
    return this.options.scope !== "caller" || owner === this.caller.id;
  }

  /** Throws `read_only` for a change on a server that only reads, and `forbidden` without the right. */
  async ask({ changes = false, ...request }: AskedAccess): Promise<void> {
    if (changes && this.options.role === "readOnly") throw createReadOnlyProblem();
    if (!(await this.#isAllowed(request))) throw createForbiddenProblem(request.action);
  }

  async #isAllowed(request: AccessRequest): Promise<boolean> {
    if (request.action === "admin" && this.caller.scopes?.includes("admin") !== true) return false;
    return (await this.options.authorize?.(this.caller, request)) ?? true;
  }

  /** Returns the row of a thread of this caller; undefined for a missing thread and for a thread of others. */
  async findThread(thread: string): Promise<OwnThread | undefined> {
    const stored = this.toStoredId(thread);
    const row = await this.store.thread(stored);
    if (row === undefined || !this.isVisible(row)) return undefined;
    return { wire: thread, stored, row };
  }

  /** True for a row of this caller whose graph is exposed. */
  isVisible(row: Pick<ThreadRow, "id" | "tenant" | "owner" | "graph">): boolean {
    return this.owns(row) && (row.graph === undefined || this.isExposed(row.graph));
  }

  /**
   * Returns a thread of this caller after asking for the right. Throws `unknown_thread`, also for a thread that the
   * caller may not read; `forbidden` and `read_only`.
   */
  async requireThread(thread: string, access: Omit<AskedAccess, "thread">): Promise<OwnThread> {
    const found = await this.findThread(thread);
    const request = { graph: found?.row.graph, ...access, thread };
    if (access.action === "thread.read") {
      if (!(await this.#isAllowed(request))) throw createUnknownThreadError(thread);
    } else await this.ask(request);
    if (found === undefined) throw createUnknownThreadError(thread);
    return found;
  }

  /** Returns a run of this caller and its thread, after asking for the right to read it. Throws `unknown_run`. */
  async requireRun(run: string): Promise<{ readonly row: RunRow; readonly thread: string }> {
    checkWireId("run", run);
    // Copies of a thread repeat the ids of its runs, also for another tenant.
    const row = await this.store.run(run, this.columns);
    if (row === undefined || !this.owns({ ...row, id: row.thread }) || !this.isExposed(row.graph))
      throw createUnknownRunError(run);
    const thread = this.toWireId(row.thread);
    const found = await this.findThread(thread);
    const isAllowed = await this.#isAllowed({ action: "thread.read", graph: row.graph, thread, run });
    if (found === undefined || !isAllowed) throw createUnknownRunError(run);
    return { row, thread };
  }

  /** True for a graph that the caller sees through this protocol. */
  isExposed(graph: string): boolean {
    const { expose } = this.options;
    if (expose === undefined) return true;
    if (typeof expose === "function") return expose({ graph, protocol: this.protocol, caller: this.caller });
    return !Object.hasOwn(expose, graph) || expose[graph]?.includes(this.protocol) === true;
  }

  /** Lists the newest version of each exposed graph, by name. */
  listGraphs(): readonly Graph[] {
    const newest = new Map<string, Graph>();
    for (const graph of this.engine.graphs) {
      const known = newest.get(graph.name);
      if (known === undefined || known.version < graph.version) newest.set(graph.name, graph);
    }
    const exposed = [...newest.values()].filter(({ name }) => this.isExposed(name));
    return exposed.sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  /** Returns the newest version of a graph. Throws `unknown_graph` for a graph that is not served or not exposed. */
  requireGraph(name: string): Graph {
    const graph = this.listGraphs().find((each) => each.name === name);
    if (graph === undefined) throw createUnknownGraphProblem(name);
    return graph;
  }
}
