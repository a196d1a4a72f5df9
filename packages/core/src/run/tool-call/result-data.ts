/** Data of tool results and updates for programs and people, as copies that can be saved. */
import { isData, type JsonObject } from "../../base/json.ts";
import { copyResultData } from "../../tool/copy-result-data.ts";
import type { ToolResult } from "../../tool/result.ts";
import type { ToolCallContext } from "./context.ts";

/** Maximum paths of dropped parts in one warning. */
const maxListed = 20;

/** Copies the data of one result or update of a call, and logs the dropped parts together. */
export interface ResultDataCopier {
  readonly copy: (value: unknown, name: string) => unknown;
  readonly logDropped: () => void;
}

/** Creates a copier; `what` names the result or update in the warning. */
export function createResultDataCopier(call: ToolCallContext, what: string): ResultDataCopier {
  const { env, block } = call;
  const dropped: string[] = [];
  return {
    copy: (value, name) => copyResultData(env.codec, value, name, (path, found) => dropped.push(`${path}: ${found}`)),
    logDropped: () => {
      if (dropped.length === 0) return;
      const hiddenCount = dropped.length - maxListed;
      env.world.log("warn", `${what} of the tool "${block.name}" has no copy of parts that are not data`, {
        callId: block.id,
        dropped: hiddenCount > 0 ? [...dropped.slice(0, maxListed), `${hiddenCount} more`] : dropped,
      });
    },
  };
}

/**
 * Returns the result with data that can be saved. A value with an output schema is not changed: its schema has accepted
 * it, and its encoding decides. Results of tools are copied before; this is for hooks and for errors with details.
 */
export function toSavableResult(call: ToolCallContext, result: ToolResult): ToolResult {
  const { details, provider, value } = result;
  const keepsValue = call.tool?.spec.output !== undefined || isData(value);
  if (isData(details) && isData(provider) && keepsValue) return result;
  const { copy, logDropped } = createResultDataCopier(call, "the result");
  const saved: ToolResult = {
    ...result,
    ...(details === undefined ? {} : { details: copy(details, "details") }),
    ...(provider === undefined ? {} : { provider: copy(provider, "provider") as JsonObject | undefined }),
    ...(keepsValue ? {} : { value: copy(value, "value") }),
  };
  logDropped();
  return saved;
}
