/**
 * Middleware of the tools: a guard before each tool call and redaction of each result. Denied calls pass through
 * both.
 */
import { decide, defineMiddleware, type ToolResult } from "statewright";
import { isSecretFile, redactSecrets } from "./secrets.ts";
import { readFileTool } from "./tools.ts";

/** Denies reads of files that usually contain secrets; the model receives the reason. */
export const guard = defineMiddleware({
  name: "guard",
  required: true,
  beforeTool: ({ call }) =>
    readFileTool.is(call) && isSecretFile(call.args.path)
      ? decide.deny(`Files such as "${call.args.path}" contain secrets and cannot be read.`)
      : undefined,
});

/** Redacts secrets in a tool result, before the result is saved and sent to the model. */
export const redact = defineMiddleware({
  name: "redact",
  required: true,
  afterTool: ({ result }) => {
    let removed = 0;
    const clean = (text: string): string => {
      const { text: without, count } = redactSecrets(text);
      removed += count;
      return without;
    };
    const content = result.content.map((block) =>
      block.type === "text" ? { ...block, text: clean(block.text) } : block,
    );
    return removed === 0
      ? undefined
      : ({ ...result, content, details: { secretsRemoved: removed } } satisfies ToolResult);
  },
});
