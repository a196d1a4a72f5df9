/** Injected parameters: hidden from the model, which may still forge them. */
import { isPlainObject } from "../../base/json.ts";
import type { ToolSpec } from "../definition/tool.ts";

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
  return isPlainObject(args) ? Object.keys(args).filter((name) => Object.hasOwn(spec.inject, name)) : [];
}
