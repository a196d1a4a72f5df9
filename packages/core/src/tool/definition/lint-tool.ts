/** Lint of tools: checks if names and descriptions explain a tool to a model and to people. */

import { isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import { resolveRef } from "../arguments/resolve-ref.ts";
import { checkToolOption } from "./check-tool-spec.ts";
import { toModelTool } from "./model-tool.ts";
import type { Tool } from "./tool.ts";

/** Code of a warning. */
export type ToolWarningCode = "short_description" | "undescribed_parameter" | "label_is_name";

/** A lint warning of a tool. */
export interface ToolWarning {
  readonly code: ToolWarningCode;
  readonly tool: string;
  /** A sentence with the fix. */
  readonly message: string;
  /** Path of the parameter, such as `filter.from`; `[]` means the items of a list. */
  readonly path?: string;
}

const minDescriptionCharacters = 20;

/** Lints a tool. Returns its warnings; an empty list for a well described tool. */
export function lintTool(tool: Pick<Tool<never, never>, "spec">): readonly ToolWarning[] {
  checkToolOption("lintTool", tool);
  return lintSpec(tool.spec);
}

function lintSpec(spec: Tool<never, never>["spec"]): readonly ToolWarning[] {
  const { name: tool, label, description } = spec;
  const warnings: ToolWarning[] = [];
  if (description.trim().length < minDescriptionCharacters)
    warnings.push({
      code: "short_description",
      tool,
      message: `The description of "${tool}" has fewer than ${minDescriptionCharacters} characters: describe its action, its arguments, and when to use it.`,
    });
  if (label === tool)
    warnings.push({
      code: "label_is_name",
      tool,
      message: `The label of "${tool}" is its name: use a label for people, or remove it.`,
    });
  for (const path of findUndescribed(toModelTool(spec).inputSchema))
    warnings.push({
      code: "undescribed_parameter",
      tool,
      path,
      message: `The parameter "${path}" of "${tool}" has no description: describe its meaning, and its unit or format.`,
    });
  return warnings;
}

/** Finds the parameters without a description, at every depth, without duplicates. */
function findUndescribed(root: JsonObject): readonly string[] {
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
      const childPath = path === "" ? name : `${path}.${name}`;
      if (!isDescribed(root, part)) found.add(childPath);
      visit(part, childPath);
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

/** Returns true if the parameter, its reference target or an alternative has a description. */
function isDescribed(root: JsonObject, schema: Json, depth = 0): boolean {
  if (!isPlainObject(schema) || depth > 8) return false;
  const { description, $ref: ref, anyOf } = schema as JsonObject;
  if (typeof description === "string" && description.trim() !== "") return true;
  if (typeof ref === "string") return isDescribed(root, resolveRef(root, ref) as Json, depth + 1);
  return Array.isArray(anyOf) && (anyOf as readonly Json[]).some((each) => isDescribed(root, each, depth + 1));
}
