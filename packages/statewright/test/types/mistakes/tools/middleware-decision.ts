/** A hook returns a decision that does not exist. */
import { defineMiddleware } from "statewright";

export const limits = defineMiddleware({
  name: "limits",
  // @ts-expect-error Type '({ call }: { readonly call: ToolCall<unknown>; readonly tool: ToolSpec; }) => { action: "denied"; reason: string; }' is not assignable to type 'BeforeToolHook<"return decide.allow(), decide.deny(reason), another decision, or nothing", unknown, unknown>'.
  beforeTool: ({ call }) => ({ action: "denied", reason: call.name }),
});
