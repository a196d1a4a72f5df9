/** Checks of parsed JSON that no schema makes: depth, size, reserved keys, numbers and texts. */
import { toPointer } from "./to-problem.ts";

/** Limits of a JSON value. */
export interface JsonLimits {
  readonly bodyLevels: number;
  readonly bodyNodes: number;
}

/** Place in a JSON value that no body may have. */
export interface JsonProblem {
  readonly pointer: string;
  readonly detail: string;
  /** True above a limit of size. */
  readonly isTooLarge: boolean;
}

const reservedKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Value to visit. The path is a list of parents: a copy of the path for each value would take memory times depth. */
interface Visit {
  readonly value: unknown;
  readonly key: string;
  readonly parent: Visit | undefined;
  readonly level: number;
}

/**
 * Returns the first problem of a parsed body; undefined for a valid one. Visits no more than the limits allow, and
 * needs no stack for deep values.
 */
export function findJsonProblem(root: unknown, limits: JsonLimits): JsonProblem | undefined {
  const visits: Visit[] = [{ value: root, key: "", parent: undefined, level: 0 }];
  let nodesLeft = limits.bodyNodes;
  for (let visit = visits.pop(); visit !== undefined; visit = visits.pop()) {
    const { value, level } = visit;
    const detail = describeScalarProblem(value) ?? describeKeyProblems(value);
    if (detail !== undefined) return { pointer: createPointer(visit), detail, isTooLarge: false };
    if (typeof value !== "object" || value === null) continue;
    if (level >= limits.bodyLevels)
      return { pointer: "", detail: `is nested deeper than ${limits.bodyLevels} levels`, isTooLarge: true };
    const entries = Object.entries(value);
    nodesLeft -= entries.length;
    if (nodesLeft < 0) return { pointer: "", detail: `has more than ${limits.bodyNodes} values`, isTooLarge: true };
    for (const [key, item] of entries) visits.push({ value: item, key, parent: visit, level: level + 1 });
  }
  return undefined;
}

function createPointer(visit: Visit): string {
  const keys: string[] = [];
  for (let at: Visit | undefined = visit; at?.parent !== undefined; at = at.parent) keys.unshift(at.key);
  return toPointer(keys);
}

function describeScalarProblem(value: unknown): string | undefined {
  if (typeof value === "number" && !Number.isFinite(value)) return "is a number out of range";
  if (typeof value === "string" && !value.isWellFormed()) return "has a lone surrogate";
  return undefined;
}

function describeKeyProblems(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  for (const key of Object.keys(value)) {
    if (reservedKeys.has(key)) return `has the reserved key "${key}"`;
    if (!key.isWellFormed()) return "has a key with a lone surrogate";
  }
  return undefined;
}
