/** Decisions of a `beforeTool` hook: the public namespace `decide`. */
import type { Json } from "../../base/json.ts";
import { checkOptions } from "../../base/options.ts";
import type { ToolCall } from "../definition/tool.ts";
import type { ToolOutput } from "../result.ts";
import { approveKey } from "./approval.ts";
import type { AskOptions, BeforeToolDecision } from "./middleware.ts";

const allowDecision: BeforeToolDecision = Object.freeze({ action: "allow" });

/** Decides to run the call unchanged. */
export function allow(): BeforeToolDecision {
  return allowDecision;
}

/** Decides to run the call with other arguments. They are validated again, and earlier hooks decide again. */
export function modify(args: unknown): BeforeToolDecision {
  return { action: "modify", args };
}

/**
 * Denies the call; the model reads the reason. `terminate` ends the agent after this batch of calls. `fail` fails the
 * run with an error that names the call.
 */
export function deny(
  reason: string,
  options: { readonly terminate?: boolean; readonly fail?: boolean } = {},
): BeforeToolDecision {
  return { action: "deny", reason, ...options };
}

/**
 * Ends the run as cancelled, with this reason: running calls are aborted and every call gets a result. As after any
 * cancel, the thread accepts a new input, and a resume calls the model with the results.
 */
export function abort(reason: string): BeforeToolDecision {
  return { action: "abort", reason };
}

/** Answers the call without running the tool. */
export function respond(output: ToolOutput | string): BeforeToolDecision {
  return { action: "respond", output };
}

/**
 * Requests approval from a person under the key `approve`; the call waits. The payload contains the call and the
 * reason.
 */
export function interrupt(call: ToolCall, reason: string, options: AskOptions = {}): BeforeToolDecision {
  checkOptions("decide.interrupt", options, ["expiresMs", "onExpire"]);
  return {
    action: "interrupt",
    key: approveKey,
    payload: { callId: call.id, tool: call.name, args: call.args as Json, reason },
    ...options,
  };
}
