/** Accepted tools of a server: created from its definitions, pinned, and kept until a person accepts a change. */
import { StatewrightError, type Tool, type ToolRegistry, type World } from "@statewright/core";
import type { AllMcpOptions } from "./mcp-options.ts";
import type { McpSession } from "./mcp-session.ts";
import { checkToolNames, createMcpTools, type McpTool, type RefusedMcpTool, type ToolSettings } from "./mcp-tools.ts";
import { comparePins, formatChange, type McpChange, type McpPins } from "./pins.ts";

interface ServerTools {
  readonly tools: readonly Tool[];
  readonly refused: readonly RefusedMcpTool[];
}

/** Parts of a connection that the accepted tools need. */
export interface AcceptedToolsOptions {
  readonly settings: ToolSettings;
  /** Digests of the definitions accepted by an earlier connection. */
  readonly pins: McpPins | undefined;
  readonly onChange: AllMcpOptions["onChange"];
  readonly createTool: (tool: McpTool) => Tool;
  /** Returns the session whose definitions may be accepted. */
  readonly getLatest: () => McpSession;
  readonly world: World;
}

/** Tools of the last accepted definitions of a server. */
export class AcceptedTools {
  readonly #options: AcceptedToolsOptions;
  readonly #syncs = new Set<() => void>();
  #accepted: ServerTools = { tools: [], refused: [] };
  #pins: McpPins = {};
  #pendingChange: McpChange | undefined;

  constructor(options: AcceptedToolsOptions) {
    this.#options = options;
  }

  get tools(): readonly Tool[] {
    return this.#accepted.tools;
  }

  get refused(): readonly RefusedMcpTool[] {
    return this.#accepted.refused;
  }

  get pins(): McpPins {
    return this.#pins;
  }

  get pendingChange(): McpChange | undefined {
    return this.#pendingChange;
  }

  /**
   * Accepts the definitions of the first session. Throws `mcp_failed` if the definitions differ from the pins and
   * `onChange` rejects the difference.
   */
  async acceptFirst(session: McpSession): Promise<void> {
    const { settings, pins } = this.#options;
    this.#pins = this.#selectPins(session);
    const change = pins === undefined ? undefined : comparePins(pins, this.#pins);
    if (change !== undefined && !(await this.#decide(change))) throw createPinError(settings.server, change);
    checkToolNames(settings, [...session.definitions, ...session.malformed]);
    this.#accepted = this.#createTools(session);
  }

  /** Accepts the definitions of a session. */
  accept(session: McpSession): void {
    const { settings, world } = this.#options;
    this.#accepted = this.#createTools(session);
    this.#pins = this.#selectPins(session);
    this.#pendingChange = undefined;
    for (const sync of this.#syncs) {
      try {
        sync();
      } catch (error) {
        world.log("error", `a registry rejected the tools of MCP server "${settings.server}"`, {
          error: String(error),
        });
      }
    }
  }

  /** Compares the definitions of a session with the accepted ones, and lets `onChange` decide about a difference. */
  async compare(session: McpSession): Promise<void> {
    const { settings, world, getLatest } = this.#options;
    const seenPins = session.pins;
    const change = comparePins(this.#pins, this.#selectPins(session));
    this.#pendingChange = change;
    if (change === undefined) return;
    world.log("warn", `the tools of MCP server "${settings.server}" changed`, { ...change });
    const isAccepted = await this.#decide(change);
    // An approval covers only the checked definitions: later definitions need another decision.
    if (isAccepted && getLatest() === session && comparePins(seenPins, session.pins) === undefined)
      this.accept(session);
  }

  /** Keeps a registry in sync with the accepted tools. Returns a function that ends the sync. */
  syncRegistry(registry: ToolRegistry): () => void {
    let registered: readonly Tool[] = [];
    const sync = (): void => {
      const next = this.tools;
      for (const { spec } of registered)
        if (!next.some((tool) => tool.spec.name === spec.name)) registry.unregister(spec.name);
      for (const tool of next) {
        const isRegistered = registered.some(({ spec }) => spec.name === tool.spec.name);
        if (isRegistered) registry.replace(tool);
        else registry.register(tool);
      }
      registered = next;
    };
    sync();
    this.#syncs.add(sync);
    return () => {
      this.#syncs.delete(sync);
      for (const { spec } of registered) registry.unregister(spec.name);
      registered = [];
    };
  }

  async #decide(change: McpChange): Promise<boolean> {
    const { settings, world, onChange } = this.#options;
    try {
      return (await onChange?.(change)) === true;
    } catch (error) {
      world.log("error", `onChange of MCP server "${settings.server}" failed`, { error: String(error) });
      return false;
    }
  }

  /** Selects the pins of the tools in `only`. */
  #selectPins({ pins }: McpSession): McpPins {
    const { only } = this.#options.settings;
    if (only === undefined) return pins;
    return Object.fromEntries(Object.entries(pins).filter(([tool]) => only.includes(tool)));
  }

  #createTools({ definitions, malformed }: McpSession): ServerTools {
    const { settings, world, createTool } = this.#options;
    const { tools, refused: unusable } = createMcpTools(definitions, settings);
    const refused = [...malformed.filter(({ name }) => settings.only?.includes(name) ?? true), ...unusable];
    for (const { name: tool, reason } of refused)
      world.log("warn", `unusable tool of MCP server "${settings.server}"`, { tool, reason });
    return { tools: tools.map(createTool), refused };
  }
}

function createPinError(name: string, change: McpChange): StatewrightError {
  return new StatewrightError("mcp_failed", {
    what: `the tools of MCP server "${name}" differ from the pins: ${formatChange(change)}`,
    next: "Review the tools, then store new pins, or decide in onChange",
    details: change,
  });
}
