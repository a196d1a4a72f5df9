/** Validates tools and their specs, for programs without types. */
import { invalidOption } from "../../base/invalid-option.ts";

/** Throws `invalid_option` for a value that is no tool spec. */
export function checkToolSpec(where: string, spec: unknown): void {
  if (typeof spec === "object" && spec !== null && "name" in spec && "description" in spec) return;
  throw invalidOption({
    where,
    expected: "the spec of a tool",
    got: spec,
    fix: "Pass the spec of a tool of defineTool",
  });
}

/** Throws `invalid_option` for a value that is no tool. */
export function checkToolOption(where: string, tool: unknown): void {
  if (typeof tool !== "object" || tool === null || !("spec" in tool))
    throw invalidOption({ where, expected: "a tool", got: tool, fix: "Pass the result of defineTool" });
  checkToolSpec(where, tool.spec);
}
