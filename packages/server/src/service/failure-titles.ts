/** Titles of failures of runs: all that a caller learns about a failed run, beside the code. */
import type { ErrorCode } from "@statewright/core";
import { isProblemCode, problemTable } from "../http/problem-table.ts";

/** Titles of codes that are no fault of a request, whose problems all have one title. */
const titles: Partial<Readonly<Record<ErrorCode, string>>> = {
  invalid_graph: "The definition of the graph has problems.",
  invalid_state: "The definition of the state is invalid.",
  invalid_tool: "A tool cannot be advertised to a model.",
  async_schema: "A schema returns a promise.",
  missing_secret: "A tool injects a secret that its source does not have.",
  missing_store: "The operation needs a store.",
  migration_failed: "A migration of the thread failed.",
  invalid_output: "The final state does not match the output of the graph.",
  timer_pending: "The run waits for a timer.",
  dead_route: "A route returned a target that its edge does not declare.",
  empty_fan_out: "A fan-out selected no items.",
  repeated_step: "A task used a step key twice.",
  node_failed: "A node of the graph failed.",
  step_limit: "The run reached its limit of supersteps.",
  machine_failed: "A part of the machine failed.",
  task_timeout: "A node exceeded its time limit.",
  effect_in_doubt: "An effect may have happened before its process died.",
  breakpoint: "The run paused at a breakpoint.",
  model_failed: "A model call failed.",
  invalid_transcript: "The conversation is not a valid transcript.",
  tool_failed: "A tool failed.",
  plugin_failed: "A plugin failed.",
  untrusted_configuration: "A configuration names programs that are not trusted.",
  mcp_failed: "An MCP server failed.",
  store_failed: "The store failed.",
  store_corrupt: "Stored data is damaged.",
  store_newer: "A newer version wrote the stored data.",
  missing_key: "A key of the store is missing.",
  store_exists: "The file of the store exists.",
  store_missing: "The file of the store is missing.",
  store_mixed: "The store belongs to another owner of threads.",
};

/** Returns the title of the code of a failure; undefined for a code outside of Statewright. */
export function findFailureTitle(code: string): string | undefined {
  if (Object.hasOwn(titles, code)) return titles[code as ErrorCode];
  return isProblemCode(code) ? problemTable[code].title : undefined;
}
