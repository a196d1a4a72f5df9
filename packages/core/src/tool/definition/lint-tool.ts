/** What could be better about a tool: how well its words tell a model, and a person, what it does. */
import { isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import { resolveRef } from "../arguments/json-schema.ts";
import { modelToolOf } from "./model-tool.ts";
import type { Tool } from "./tool.ts";

/** What a warning is about. */
export type ToolWarningCode = "short_description" | "undescribed_parameter" | "label_is_name";

/** One thing that could be better. */
export interface ToolWarning {
  readonly code: ToolWarningCode;
  readonly tool: string;
  /** One sentence with what to do. */
  readonly message: string;
  /** Which parameter, such as `filter.from`; `[]` stands for the items of a list. */
  readonly path?: string;
}

const shortest = 20;

/** Look at the words of a tool. Gives no warning for one that a model and a person can understand. */
export function lintTool({ spec }: Pick<Tool<never, never>, "spec">): readonly ToolWarning[] {
  const { name: tool, label, description } = spec;
  const warnings: ToolWarning[] = [];
  if (description.trim().length < shortest)
    warnings.push({
      code: "short_description",
      tool,
      message: `The description of "${tool}" has fewer than ${shortest} characters: say what it does, with what, and when to use it.`,
    });
  if (label === tool)
    warnings.push({
      code: "label_is_name",
      tool,
      message: `The label of "${tool}" is its name: give words for people, or leave it out.`,
    });
  for (const path of undescribed(modelToolOf(spec).inputSchema))
    warnings.push({
      code: "undescribed_parameter",
      tool,
      path,
      message: `The parameter "${path}" of "${tool}" has no description: say what it means and in which unit or format.`,
    });
  return warnings;
}

/** The parameters without a description, at every depth, each once. */
function undescribed(root: JsonObject): readonly string[] {
  const found = new Set<string>();
  const visited = new Set<unknown>();
  const visit = (schema: Json | undefined, path: string): void => {
    if (!isPlainObject(schema) || visited.has(schema)) return;
    visited.add(schema);
    const {
      properties,
      items,
      prefixItems,
      additionalProperties,
      anyOf,
      oneOf,
      allOf,
      $ref: ref,
    } = schema as JsonObject;
    for (const [name, part] of Object.entries(isPlainObject(properties) ? (properties as JsonObject) : {})) {
      const at = path === "" ? name : `${path}.${name}`;
      if (!isDescribed(root, part)) found.add(at);
      visit(part, at);
    }
    visit(items, `${path}[]`);
    visit(additionalProperties, path === "" ? "*" : `${path}.*`);
    for (const each of [prefixItems, anyOf, oneOf, allOf])
      for (const part of Array.isArray(each) ? (each as readonly Json[]) : [])
        visit(part, each === prefixItems ? `${path}[]` : path);
    if (typeof ref === "string") visit(resolveRef(root, ref) as Json | undefined, path);
  };
  visit(root, "");
  return [...found];
}

/** A description stands with the parameter, with what it refers to, or with one of its alternatives. */
function isDescribed(root: JsonObject, schema: Json, depth = 0): boolean {
  if (!isPlainObject(schema) || depth > 8) return false;
  const { description, $ref: ref, anyOf } = schema as JsonObject;
  if (typeof description === "string" && description.trim() !== "") return true;
  if (typeof ref === "string") return isDescribed(root, resolveRef(root, ref) as Json, depth + 1);
  return Array.isArray(anyOf) && (anyOf as readonly Json[]).some((each) => isDescribed(root, each, depth + 1));
}
