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
import { checkFlag } from "../agent/check-option.ts";
import { textsSchema } from "../output/strings-schema.ts";
import { checkAsking } from "./check-ask-options.ts";

/** What `guardUntrusted` takes. */
export interface GuardOptions extends AskOptions {
  /** Whether what a tool gives may hold the words of strangers. Default: tools that use the network. */
  readonly brings?: (tool: ToolSpec) => boolean;
  /** Whether a tool could do harm with them. Default: tools that may write, spend, use the network or start processes. */
  readonly harms?: (tool: ToolSpec) => boolean;
  /** What happens to calls of those tools then: a person is asked (default), or they are refused. */
  readonly action?: "ask" | "refuse";
  /** Whether it stands around sub-agents too: what they bring, and what they could do. Default true. */
  readonly tree?: boolean;
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
 * Remember in the state when a tool brings content from outside, a sub-agent's too; from the next message on, calls of tools
 * that could do harm with it are asked about or refused, those of sub-agents among them. No compaction of the conversation and
 * no restart forgets it.
 */
export function guardUntrusted(options: GuardOptions = {}): Middleware {
  checkOptions(
    "guardUntrusted",
    options,
    optionNames<GuardOptions>({ brings: true, harms: true, action: true, expiresMs: true, onExpire: true, tree: true }),
  );
  const { brings = usesNetwork, harms = couldHarm, action = "ask", tree = true, ...asking } = options;
  checkAsking("guardUntrusted", asking);
  checkFlag("guardUntrusted", { tree });
  if (action !== "ask" && action !== "refuse")
    throw new StatewrightError("invalid_option", {
      what: "the action of guardUntrusted is not known",
      next: 'Give "ask" or "refuse"',
    });
  return defineMiddleware({
    name: "guardUntrusted",
    required: true,
    inherited: tree,
    channels: untrustedFrom,
    asks: action === "ask" ? ["approve"] : [],
    beforeTool: ({ call, tool }, { ledger }) => {
      // The model that made the calls of this message has not read what the others of them bring.
      const from = ledger(untrustedFrom.untrustedFrom).value({ beside: "none" });
      if (from.length === 0 || harms(tool) === false) return undefined;
      const why = `content from outside has entered by ${from.map((name) => `"${name}"`).join(", ")}`;
      return action === "ask"
        ? interruptFor(call, `${tool.label}: ${why}`, asking)
        : deny(`The tool "${tool.name}" is off: ${why}.`);
    },
    afterTool: ({ tool, result }, { ledger, state }) => {
      const given = !result.isError || result.attempts > 0;
      if (tool === undefined || !given || brings(tool) === false) return undefined;
      ledger(untrustedFrom.untrustedFrom).enter("brought", tool.name);
      // In the result too, where the graph itself remembers it: a branch that takes the result over takes this with it.
      if (!Object.hasOwn(state as object, "untrustedFrom")) return undefined;
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
