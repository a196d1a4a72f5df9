/** What stands around the tools: a guard before them, a redaction after them. Both also see calls that were refused. */
import { defineMiddleware, deny, type ToolResult } from "statewright";
import { isSecretFile, redacted } from "./secrets.ts";
import { readFileTool } from "./tools.ts";

/** Refuse to read the files in which people keep secrets; the model reads why. */
export const guard = defineMiddleware({
  name: "guard",
  required: true,
  beforeTool: ({ call }) =>
    readFileTool.is(call) && isSecretFile(call.args.path)
      ? deny(`Files like "${call.args.path}" hold secrets and are not read.`)
      : undefined,
});

/** Take what looks like a secret out of a result, before it is saved and before the model reads it. */
export const redact = defineMiddleware({
  name: "redact",
  required: true,
  afterTool: ({ result }) => {
    let removed = 0;
    const clean = (text: string): string => {
      const { text: without, count } = redacted(text);
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
