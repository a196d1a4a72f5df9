/** Console readers of tool events, in the style of yoagent and of pi. */

import type { RunEvent } from "statewright";
import { piDialect, yoagentDialect } from "statewright/adapter";
import { getUpdateText, type Print } from "./print.ts";

/** Prints one line per event of a tool call: start, partial text, progress and end. */
export function createYoagentReader(print: Print): (event: RunEvent) => void {
  const translate = yoagentDialect();
  return (event) => {
    for (const translated of translate(event)) {
      if (translated.type === "ToolExecutionStart") print(`⏳ ${translated.toolName} started\n`);
      else if (translated.type === "ToolExecutionEnd")
        print(`${translated.isError ? "❌" : "✅"} ${translated.toolName}\n`);
      else if (translated.type === "ProgressMessage") print(`  💬 ${translated.toolName}: ${translated.text}\n`);
      else if (translated.type === "ToolExecutionUpdate") {
        const text = getUpdateText(translated.partialResult);
        if (text !== undefined) print(`  📊 ${translated.toolName}: ${text}\n`);
      }
    }
  };
}

/** Prints arguments, partial results and results of each tool call as JSON. */
export function createPiReader(print: Print): (event: RunEvent) => void {
  const translate = piDialect();
  return (event) => {
    for (const translated of translate(event)) {
      if (translated.type === "tool_execution_start")
        print(`Starting ${translated.toolName} with args: ${JSON.stringify(translated.args)}\n`);
      else if (translated.type === "tool_execution_update")
        print(`Update from ${translated.toolName}: ${JSON.stringify(translated.partialResult.content)}\n`);
      else if (translated.type === "tool_execution_end")
        print(
          `Tool ${translated.toolName} ${translated.isError ? "failed" : "completed"}: ${JSON.stringify(translated.result.content)}\n`,
        );
    }
  };
}
