/** Caller of a connection, and thread ids of its threads in the store. */
import { invalidOption } from "@statewright/core/adapter";

/** MCP client of a tool call. */
export interface McpCaller {
  /** `local` over stdio; over HTTP the client of the token. */
  readonly id: string;
}

/** Value for all callers, or a function of the caller. */
export type PerCaller<Value> = Value | ((caller: McpCaller) => Value);

/** Resolves a per-caller value for a single caller. */
export function resolveForCaller<Value>(value: PerCaller<Value>, caller: McpCaller): Value {
  return typeof value === "function" ? (value as (caller: McpCaller) => Value)(caller) : value;
}

const callerPattern = /^[A-Za-z0-9_-]{1,32}$/;
const threadPattern = /^[A-Za-z0-9_-]{1,48}$/;

/**
 * Checks a client id for use in thread ids. Throws `invalid_option` for an id that could collide with another client.
 */
export function checkCallerId(id: string): string {
  if (isCallerId(id)) return id;
  throw invalidOption({
    where: "serveMcp",
    expected: "a client id of 1 to 32 of the characters A-Z a-z 0-9 _ -",
    got: id,
    fix: "Use another name for the client",
  });
}

/** Returns true for a valid client id. */
export function isCallerId(id: string): boolean {
  return callerPattern.test(id);
}

/** Returns true for a valid thread name of a client. */
export function isThreadName(thread: unknown): thread is string {
  return typeof thread === "string" && threadPattern.test(thread);
}

/** Description of valid thread names. */
export const threadNameRule = "1 to 48 of the characters A-Z a-z 0-9 _ -";

/**
 * Creates the thread id in the store. Client id and tool name contain no dot, so that a thread name cannot reach a
 * thread of another client or another tool.
 */
export function createThreadId({ id }: McpCaller, tool: string, thread: string): string {
  return `mcp.${id}.${tool}.${thread}`;
}
