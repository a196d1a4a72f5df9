/** Once content from outside has entered a thread, what could carry out its orders needs a yes, or is off. */
import {
  type AskOptions,
  type Channel,
  checkOptions,
  defineMiddleware,
  deny,
  interruptFor,
  type Middleware,
  optionNames,
  reduce,
  StatewrightError,
  type ToolSpec,
} from "@statewright/core";
import { textsSchema } from "../texts-schema.ts";
import { checkAsking } from "./check-asking.ts";

/** What `guardUntrusted` takes. */
export interface GuardOptions extends AskOptions {
  /** Whether what a tool gives may hold the words of strangers. Default: tools that use the network. */
  readonly brings?: (tool: ToolSpec) => boolean;
  /** Whether a tool could do harm with them. Default: tools that may write, spend, use the network or start processes. */
  readonly harms?: (tool: ToolSpec) => boolean;
  /** What happens to calls of those tools then: a person is asked (default), or they are refused. */
  readonly action?: "ask" | "refuse";
}

/** The channel that holds which tools brought content from outside: a graph of your own declares it, `defineState({ …, ...untrustedFrom })`. */
export const untrustedFrom: {
  readonly untrustedFrom: Channel<readonly string[], string, readonly string[] | undefined>;
} = {
  untrustedFrom: reduce(textsSchema("names of tools"), (before, tool: string) =>
    before.includes(tool) ? before : [...before, tool],
  ) as Channel<readonly string[], string, readonly string[] | undefined>,
};

/**
 * Remember in the state when a tool brings content from outside; from the next message on, calls of tools that could do harm
 * with it are asked about or refused. No compaction of the conversation and no restart forgets it.
 */
export function guardUntrusted(options: GuardOptions = {}): Middleware {
  checkOptions(
    "guardUntrusted",
    options,
    optionNames<GuardOptions>({ brings: true, harms: true, action: true, expiresMs: true, onExpire: true }),
  );
  const { brings = usesNetwork, harms = couldHarm, action = "ask", ...asking } = options;
  checkAsking("guardUntrusted", asking);
  if (action !== "ask" && action !== "refuse")
    throw new StatewrightError("invalid_option", {
      what: "the action of guardUntrusted is not known",
      next: 'Give "ask" or "refuse"',
    });
  return defineMiddleware({
    name: "guardUntrusted",
    required: true,
    channels: untrustedFrom,
    asks: action === "ask" ? ["approve"] : [],
    beforeTool: ({ call, tool }, { state }) => {
      const { untrustedFrom: from } = state as { readonly untrustedFrom: readonly string[] };
      if (from.length === 0 || harms(tool) === false) return undefined;
      const why = `content from outside has entered by ${from.map((name) => `"${name}"`).join(", ")}`;
      return action === "ask"
        ? interruptFor(call, `${tool.label}: ${why}`, asking)
        : deny(`The tool "${tool.name}" is off: ${why}.`);
    },
    afterTool: ({ tool, result }) => {
      const given = !result.isError || result.attempts > 0;
      if (tool === undefined || !given || brings(tool) === false) return undefined;
      const { command } = result;
      return { ...result, command: { ...command, update: { ...command?.update, untrustedFrom: tool.name } } };
    },
  });
}

function usesNetwork({ safety: { network = false } }: ToolSpec): boolean {
  return network !== false && !(Array.isArray(network) && network.length === 0);
}

function couldHarm(tool: ToolSpec): boolean {
  const { access, spend = false, process = false, filesystem } = tool.safety;
  return access !== "read" || spend !== false || process || filesystem === "write" || usesNetwork(tool);
}
