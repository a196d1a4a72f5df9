/** Watches the tool list of a server: lists the tools again after change notifications. */
import type { World } from "@statewright/core";
import type { Supervisor } from "@statewright/host";
import type { McpSession } from "./mcp-session.ts";

/** Watched connection. */
export interface ToolListConnection {
  readonly supervisor: Supervisor<McpSession>;
  /** Compares the listed definitions with the accepted ones. */
  readonly compare: (session: McpSession) => Promise<void>;
}

/** Minimum milliseconds between two lists of a server's tools. */
const relistPauseMs = 100;

/** Lists the tools serially, because a server may send change notifications in rapid succession. */
export class ToolListWatcher {
  readonly #server: string;
  readonly #world: World;
  #connection: ToolListConnection | undefined;
  /** True after a change notification, until the next list. */
  #isStale = false;
  #isListing = false;

  constructor(server: string, world: World) {
    this.#server = server;
    this.#world = world;
  }

  /** Handles a change notification. Before `start` the notification is only remembered. */
  notify(): void {
    this.#isStale = true;
    if (this.#isListing || this.#connection === undefined) return;
    this.#isListing = true;
    void this.#relist(this.#connection);
  }

  /** Starts after the decision about the first definitions, which must not cover later definitions. */
  start(connection: ToolListConnection): void {
    this.#connection = connection;
    if (this.#isStale) this.notify();
  }

  async #relist({ supervisor, compare }: ToolListConnection): Promise<void> {
    const world = this.#world;
    while (this.#isStale && !supervisor.isClosed) {
      this.#isStale = false;
      const session = supervisor.latest;
      try {
        await session.refreshTools();
        await compare(session);
      } catch (error) {
        world.log("warn", `could not list the tools of MCP server "${this.#server}" again`, { error: String(error) });
      }
      if (this.#isStale) await new Promise<void>((done) => void world.schedule.after(relistPauseMs, done));
    }
    this.#isListing = false;
  }
}
