/** Readers: what a console prints for the events of tools, in the manner of yoagent and of pi. */
import { piDialect, type RunEvent, yoagentDialect } from "statewright";
import { type Print, textOfUpdate } from "./print.ts";

/** One line for each event of a call: started, partial text, progress, how it ended. */
export function yoagentReader(print: Print): (event: RunEvent) => void {
  const translate = yoagentDialect();
  return (event) => {
    for (const moment of translate(event)) {
      if (moment.type === "ToolExecutionStart") print(`⏳ ${moment.toolName} started\n`);
      else if (moment.type === "ToolExecutionEnd") print(`${moment.isError ? "❌" : "✅"} ${moment.toolName}\n`);
      else if (moment.type === "ProgressMessage") print(`  💬 ${moment.toolName}: ${moment.text}\n`);
      else if (moment.type === "ToolExecutionUpdate") {
        const text = textOfUpdate(moment.partialResult);
        if (text !== undefined) print(`  📊 ${moment.toolName}: ${text}\n`);
      }
    }
  };
}

/** Arguments, partial results and results of each call, as JSON. */
export function piReader(print: Print): (event: RunEvent) => void {
  const translate = piDialect();
  return (event) => {
    for (const moment of translate(event)) {
      if (moment.type === "tool_execution_start")
        print(`Starting ${moment.toolName} with args: ${JSON.stringify(moment.args)}\n`);
      else if (moment.type === "tool_execution_update")
        print(`Update from ${moment.toolName}: ${JSON.stringify(moment.partialResult.content)}\n`);
      else if (moment.type === "tool_execution_end")
        print(
          `Tool ${moment.toolName} ${moment.isError ? "failed" : "completed"}: ${JSON.stringify(moment.result.content)}\n`,
        );
    }
  };
}
