/** Who calls: the client behind a connection, and the names under which its threads stand in the store. */
import { StatewrightError } from "@statewright/core";

/** The client that calls. */
export interface McpCaller {
  /** `local` over stdio; over HTTP the client that the token belongs to. */
  readonly id: string;
}

/** What depends on who calls, or does not. */
export type PerCaller<Value> = Value | ((caller: McpCaller) => Value);

/** A value for one caller. */
export function forCaller<Value>(value: PerCaller<Value>, caller: McpCaller): Value {
  return typeof value === "function" ? (value as (caller: McpCaller) => Value)(caller) : value;
}

const callerGrammar = /^[A-Za-z0-9_-]{1,32}$/;
const threadGrammar = /^[A-Za-z0-9_-]{1,48}$/;

/** A client's id as it stands in names of threads. Throws `invalid_option` for one that could be taken for another's. */
export function checkCaller(id: string): string {
  if (callerGrammar.test(id)) return id;
  throw new StatewrightError("invalid_option", {
    what: `the id of a client of serveMcp is ${JSON.stringify(id)}`,
    next: "Use 1 to 32 of the characters A-Z a-z 0-9 _ -",
  });
}

/** Whether a client may name a thread so. */
export function isThreadName(thread: unknown): thread is string {
  return typeof thread === "string" && threadGrammar.test(thread);
}

/** What a client may name a thread, in words. */
export const threadNameRule = "1 to 48 of the characters A-Z a-z 0-9 _ -";

/**
 * The id of a thread in the store. It holds the client and the tool, none of which has a dot: no name that a client can give
 * leads to a thread of another client, or of another tool.
 */
export function storedThread({ id }: McpCaller, tool: string, thread: string): string {
  return `mcp.${id}.${tool}.${thread}`;
}
