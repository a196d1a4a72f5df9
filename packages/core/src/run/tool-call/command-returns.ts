/** Commands of tool results, as return values of their node. */
import { goto } from "../../define/command.ts";
import type { ToolResult } from "../../tool/result.ts";

/** Returns the update and the goto of a result as items of the return value of its node. */
export function listCommandReturns({ command }: Pick<ToolResult, "command">): readonly unknown[] {
  return [
    ...(command?.update === undefined ? [] : [command.update]),
    ...(command?.goto === undefined ? [] : [goto(command.goto)]),
  ];
}
