/** Parses the arguments of a call by the tool's schema. */
import { checkSyncIssues, checkSyncResult } from "../../base/async-schema.ts";
import { argumentBounds, findInvalidData } from "../../base/bounds.ts";
import { describeThrown } from "../../base/errors.ts";
import { describeValue, isPlainObject, type Json, type JsonObject } from "../../base/json.ts";
import { parseWith, type SchemaIssue } from "../../base/schema.ts";
import { toModelTool } from "../definition/model-tool.ts";
import type { Tool, ToolSpec } from "../definition/tool.ts";
import { resolveRef } from "./resolve-ref.ts";
import { findUnexpectedArgs } from "./unexpected-args.ts";

/** Result of parsing: the arguments for the tool, or the issues for the model. */
export type ParsedArgs =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly issues: readonly SchemaIssue[] };

/**
 * Parses arguments by the tool's schema. Reports unknown keys at every depth, which zod would drop silently; for a
 * JSON Schema, `additionalProperties` decides. Throws `async_schema` for an asynchronous schema.
 */
export function parseArgs(spec: ToolSpec, args: unknown): ParsedArgs {
  if (!isPlainObject(args)) return { ok: false, issues: [{ path: "", message: "expected an object of arguments" }] };
  const invalid = findInvalidData(args, argumentBounds);
  if (invalid !== undefined) return { ok: false, issues: [{ path: "", message: `they ${invalid.text}` }] };
  if ("jsonSchema" in spec.input) return validateArgs(spec, spec.input.validate, args);
  const advertised = toModelTool(spec).inputSchema;
  const unexpected = findUnexpectedArgs(advertised, args);
  const parsed = parseWith(spec.input, args);
  if (!parsed.ok) {
    checkSyncResult(parsed, describeInput(spec), { tool: spec.name });
    const issues = parsed.issues.map((issue) => addExpectedType(advertised, issue));
    return { ok: false, issues: mergeUnknownKeys(unexpected.unknown, issues) };
  }
  if (unexpected.unknown.length > 0) return { ok: false, issues: unexpected.unknown };
  // A coercing schema converts null to 0 or "null". Refuse null unless the advertised schema allows null.
  return unexpected.nulls.length > 0 ? { ok: false, issues: unexpected.nulls } : parsed;
}

/** Adds unknown keys to the issues of a schema, in place of the schema's own issues about unknown keys. */
function mergeUnknownKeys(unknown: readonly SchemaIssue[], issues: readonly SchemaIssue[]): readonly SchemaIssue[] {
  if (unknown.length === 0) return issues;
  return [...unknown, ...issues.filter(({ message }) => !/unrecognized key|unknown key/i.test(message))];
}

/**
 * Runs the tool's `prepareArguments` on a copy of the arguments; returns the same arguments without
 * `prepareArguments`.
 */
export function prepareArgs({ spec, prepareArguments }: Tool<never, never>, args: unknown): ParsedArgs {
  if (prepareArguments === undefined) return { ok: true, value: args };
  try {
    return { ok: true, value: prepareArguments(structuredClone(args)) };
  } catch (thrown) {
    return {
      ok: false,
      issues: [{ path: "", message: `"${spec.name}" cannot prepare the arguments: ${describeThrown(thrown)}` }],
    };
  }
}

/** Returns true if a tool has no arguments. An empty text from a model then means no arguments. */
export function hasNoArguments(spec: ToolSpec): boolean {
  return Object.keys((toModelTool(spec).inputSchema["properties"] ?? {}) as object).length === 0;
}

function validateArgs(spec: ToolSpec, validate: (value: unknown) => readonly SchemaIssue[], args: unknown): ParsedArgs {
  let issues: readonly SchemaIssue[];
  try {
    issues = validate(args);
  } catch (thrown) {
    return { ok: false, issues: [{ path: "", message: `the arguments cannot be read: ${describeThrown(thrown)}` }] };
  }
  checkSyncIssues(issues, describeInput(spec), { tool: spec.name });
  if (!Array.isArray(issues)) {
    const returned = describeValue(issues);
    return {
      ok: false,
      issues: [
        { path: "", message: `the arguments cannot be read: the validator returned ${returned}, not a list of issues` },
      ],
    };
  }
  return issues.length === 0 ? { ok: true, value: args } : { ok: false, issues };
}

function describeInput({ name }: ToolSpec): string {
  return `the input of the tool "${name}"`;
}

/** Adds the expected type to an issue with a custom message of the schema. */
function addExpectedType(root: JsonObject, issue: SchemaIssue): SchemaIssue {
  if (issue.path === "" || /expected|received/i.test(issue.message)) return issue;
  let current: unknown = root;
  for (const step of issue.path.split(".")) {
    if (!isPlainObject(current)) return issue;
    const { properties, items, prefixItems, $ref: ref } = current as JsonObject;
    if (typeof ref === "string") current = resolveRef(root, ref);
    else if (isPlainObject(properties) && Object.hasOwn(properties, step)) current = properties[step];
    else current = Array.isArray(prefixItems) ? (prefixItems as readonly Json[])[Number(step)] : items;
  }
  const type = isPlainObject(current) ? current["type"] : undefined;
  return typeof type === "string" ? { path: issue.path, message: `${issue.message} (expected ${type})` } : issue;
}

/**
 * Drops injected parameter names that the model or a change of arguments forged, before parsing. The injected value
 * wins.
 */
export function omitHiddenArgs(spec: ToolSpec, args: unknown): unknown {
  if (!isPlainObject(args) || listForgedKeys(spec, args).length === 0) return args;
  return Object.fromEntries(Object.entries(args).filter(([name]) => !Object.hasOwn(spec.inject, name)));
}

/** Lists the injected parameter names among the arguments. */
export function listForgedKeys(spec: ToolSpec, args: unknown): readonly string[] {
  if (!isPlainObject(args) || Object.keys(spec.inject).length === 0) return [];
  return Object.keys(args).filter((name) => Object.hasOwn(spec.inject, name));
}
