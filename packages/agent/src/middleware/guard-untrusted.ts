/**
 * Middleware that asks for approval of harmful tool calls, or denies the calls, after untrusted content has entered a
 * thread.
 */
import {
  type AskOptions,
  approval,
  type Channel,
  channel,
  decide,
  defineMiddleware,
  type Middleware,
  type ToolSpec,
} from "@statewright/core";
import { checkChoice, checkFlag, checkOptions, listOptionNames } from "@statewright/core/adapter";
import { createStringsSchema } from "../output/strings-schema.ts";
import { checkAskOptions } from "./check-ask-options.ts";

/** Untrusted and harmful tools, and the effect of a harmful call. */
export interface GuardOptions extends AskOptions {
  /** Returns true for tools whose results may contain untrusted content. Default: tools with network access. */
  readonly isUntrusted?: (tool: ToolSpec) => boolean;
  /**
   * Returns true for tools that prompt injection could misuse. Default: tools that write, spend money, use the
   * network or start processes.
   */
  readonly isHarmful?: (tool: ToolSpec) => boolean;
  /** Action for calls of harmful tools: ask a person (default), or deny the call. */
  readonly action?: "ask" | "refuse";
  /** True when the middleware applies to sub-agents too. Default true. */
  readonly tree?: boolean;
}

/**
 * Channel of the names of tools that returned untrusted content; add it to a user-defined graph: `defineState({ …,
 * ...untrustedFrom })`.
 */
export const untrustedFrom: {
  readonly untrustedFrom: Channel<readonly string[], string, readonly string[] | undefined>;
} = {
  untrustedFrom: channel.reduce(createStringsSchema("names of tools"), (names, tool: string) =>
    names.includes(tool) ? names : names.concat(tool),
  ) as Channel<readonly string[], string, readonly string[] | undefined>,
};

/**
 * Records in state when a tool returns untrusted content, also in a sub-agent. From the next message on, calls of
 * harmful tools need approval or are denied, also in sub-agents. The record survives compaction of the conversation
 * and restarts.
 */
export function guardUntrusted(options: GuardOptions = {}): Middleware {
  checkOptions(
    "guardUntrusted",
    options,
    listOptionNames<GuardOptions>({
      isUntrusted: true,
      isHarmful: true,
      action: true,
      expiresMs: true,
      onExpire: true,
      tree: true,
    }),
  );
  const {
    isUntrusted = hasNetworkAccess,
    isHarmful = isHarmfulTool,
    action = "ask",
    tree = true,
    ...askOptions
  } = options;
  checkAskOptions("guardUntrusted", askOptions);
  checkFlag("guardUntrusted", { tree });
  checkChoice("guardUntrusted", { action }, ["ask", "refuse"]);
  return defineMiddleware({
    name: "guardUntrusted",
    required: true,
    inherited: tree,
    channels: untrustedFrom,
    ...(action === "ask" && { interrupts: { approve: approval } }),
    beforeTool: ({ call, tool }, { ledger }) => {
      // Ignores results of concurrent calls of the same message: the model had not read these results at the time of
      // this call.
      const sources = ledger(untrustedFrom.untrustedFrom).getValue({ siblings: "none" });
      if (sources.length === 0 || isHarmful(tool) === false) return undefined;
      const reason = `untrusted content has entered through ${sources.map((name) => `"${name}"`).join(", ")}`;
      return action === "ask"
        ? decide.interrupt(call, `${tool.label}: ${reason}`, askOptions)
        : decide.deny(`The tool "${tool.name}" is disabled: ${reason}.`);
    },
    afterTool: ({ tool, result }, { ledger, state }) => {
      const hasRun = !result.isError || result.attempts > 0;
      if (tool === undefined || !hasRun || isUntrusted(tool) === false) return undefined;
      ledger(untrustedFrom.untrustedFrom).enter("brought", tool.name);
      // Also part of the result when the graph has the channel: a branch that reuses the result applies this update
      // too.
      if (!Object.hasOwn(state as object, "untrustedFrom")) return undefined;
      const { command } = result;
      return { ...result, command: { ...command, update: { ...command?.update, untrustedFrom: tool.name } } };
    },
  });
}

function hasNetworkAccess({ safety: { network = false } }: ToolSpec): boolean {
  return network !== false && !(Array.isArray(network) && network.length === 0);
}

function isHarmfulTool(tool: ToolSpec): boolean {
  const { access, spend = false, process = false, filesystem } = tool.safety;
  return access !== "read" || spend !== false || process || filesystem === "write" || hasNetworkAccess(tool);
}
