/** Arguments of a call, read by the tool's schema: what reaches its body, or what the model must mend. */
import { checkAnswered, checkIssuesAtOnce } from "../../base/async-schema.ts";
import { argumentBounds, unfitData } from "../../base/bounds.ts";
import { describeThrown } from "../../base/errors.ts";
import { describeValue, isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import { parseWith, type SchemaIssue } from "../../base/schema.ts";
import { modelToolOf } from "../definition/model-tool.ts";
import type { Tool, ToolSpec } from "../definition/tool.ts";
import { resolveRef } from "./json-schema.ts";
import { straysIn } from "./unexpected-args.ts";

/** What reading gives. */
export type ParsedArgs =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] };

/**
 * Arguments parsed by the tool's schema. Unknown keys are named at every depth, where zod would drop them in silence; those
 * of a JSON Schema are as its `additionalProperties` says. Throws `async_schema` for a schema that answers with a promise.
 */
export function parseArgs(spec: ToolSpec, args: unknown): ParsedArgs {
  if (!isPlainObject(args)) return { ok: false, issues: [{ path: "", message: "expected an object of arguments" }] };
  const unfit = unfitData(args, argumentBounds);
  if (unfit !== undefined) return { ok: false, issues: [{ path: "", message: `they ${unfit.text}` }] };
  if ("jsonSchema" in spec.input) return validated(spec, spec.input.validate, args);
  const shown = modelToolOf(spec).inputSchema;
  const strays = straysIn(shown, args);
  if (strays.unknown.length > 0) return { ok: false, issues: strays.unknown };
  const parsed = parseWith(spec.input, args);
  if (!parsed.ok) {
    checkAnswered(parsed, inputOf(spec), { tool: spec.name });
    return { ok: false, issues: parsed.issues.map((issue) => withExpected(shown, issue)) };
  }
  // A schema that coerces takes null for 0 or "null": the model is held to what it was shown.
  return strays.nulls.length > 0 ? { ok: false, issues: strays.nulls } : parsed;
}

/** Arguments as the tool's own `prepareArguments` mends them; as they are where it has none. */
export function preparedArgs({ spec, prepareArguments }: Tool<never, never>, args: unknown): ParsedArgs {
  if (prepareArguments === undefined) return { ok: true, value: args };
  try {
    return { ok: true, value: prepareArguments(structuredClone(args)) };
  } catch (thrown) {
    return { ok: false, issues: [{ path: "", message: `"${spec.name}" cannot read them: ${describeThrown(thrown)}` }] };
  }
}

/** Whether a tool has no arguments: an empty text from a model then means that there are none. */
export function takesNothing(spec: ToolSpec): boolean {
  return Object.keys((modelToolOf(spec).inputSchema["properties"] ?? {}) as object).length === 0;
}

function validated(spec: ToolSpec, validate: (value: unknown) => readonly SchemaIssue[], args: unknown): ParsedArgs {
  let issues: readonly SchemaIssue[];
  try {
    issues = validate(args);
  } catch (thrown) {
    return { ok: false, issues: [{ path: "", message: `they cannot be read: ${describeThrown(thrown)}` }] };
  }
  checkIssuesAtOnce(issues, inputOf(spec), { tool: spec.name });
  if (!Array.isArray(issues)) {
    const given = describeValue(issues);
    return {
      ok: false,
      issues: [{ path: "", message: `they cannot be read: the validator gave ${given}, no issues` }],
    };
  }
  return issues.length === 0 ? { ok: true, value: args } : { ok: false, issues };
}

function inputOf({ name }: ToolSpec): string {
  return `the input of the tool "${name}"`;
}

/** A message of the schema's own says what is wrong in the author's words; what was expected there stands beside it. */
function withExpected(root: JsonObject, issue: SchemaIssue): SchemaIssue {
  if (issue.path === "" || /expected|received/i.test(issue.message)) return issue;
  let at: unknown = root;
  for (const step of issue.path.split(".")) {
    if (!isPlainObject(at)) return issue;
    const { properties, items, prefixItems, $ref: ref } = at as JsonObject;
    if (typeof ref === "string") at = resolveRef(root, ref);
    else if (isPlainObject(properties) && Object.hasOwn(properties, step)) at = properties[step];
    else at = Array.isArray(prefixItems) ? (prefixItems as readonly Json[])[Number(step)] : items;
  }
  const type = isPlainObject(at) ? at["type"] : undefined;
  return typeof type === "string" ? { path: issue.path, message: `${issue.message} (expected ${type})` } : issue;
}
