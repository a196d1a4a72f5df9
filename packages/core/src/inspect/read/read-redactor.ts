/** Redaction of what readers show: given texts and patterns, texts that look like keys, and the policies of tools. */
import { createPatternRedactor, type Redact } from "../../base/redaction/redact-patterns.ts";
import type { Graph } from "../../compile/graph.ts";
import { getPlan } from "../../compile/plan.ts";
import type { RedactionPolicy } from "../../tool/artifacts/redaction-policy.ts";
import type { Tool } from "../../tool/definition/tool.ts";
import { toolRegistry } from "../../tool/registry.ts";
import { createToolRedactor } from "./redact-tool-data.ts";

/** Redacts values for the caller of a reader. */
export interface ReadRedactor {
  /** Redacts a value for the caller. */
  readonly redact: Redact;
  /** Redacts the outcome of a tool call, by tool name. */
  readonly redactOutcome: (tool: string, outcome: unknown) => unknown;
}

/** Options of the redaction of a reader. */
interface RedactOptions {
  readonly redact?: readonly (string | RegExp)[] | undefined;
  readonly tools?: readonly Tool<never, never>[] | undefined;
  readonly graph?: Graph | undefined;
}

/** Creates the redactor of a reader; without options values are unchanged. Throws `invalid_option`. */
export function createReadRedactor(call: string, { redact, tools = [], graph }: RedactOptions): ReadRedactor {
  const redactTexts = createTextRedactor(call, redact);
  if (tools.length === 0 && graph === undefined)
    return { redact: redactTexts, redactOutcome: (_tool, outcome) => redactTexts(outcome) };
  const toolRedactor = createToolRedactor(createPolicyFinder(graph, tools));
  return {
    redact: (value) => redactTexts(toolRedactor.redactMessages(value)),
    redactOutcome: (tool, outcome) => redactTexts(toolRedactor.redactOutcome(tool, outcome)),
  };
}

/** Creates the redactor of the option `redact`; without the option values are unchanged. Throws `invalid_option`. */
export function createTextRedactor(call: string, redact: RedactOptions["redact"]): Redact {
  return redact === undefined ? (value) => value : createPatternRedactor(call, redact);
}

/** Returns a function that finds the redaction policy of a tool by any of its names. */
function createPolicyFinder(
  graph: Graph | undefined,
  tools: readonly Tool<never, never>[],
): (name: string) => RedactionPolicy | undefined {
  const given = toolRegistry(tools);
  const registries = [given, ...(graph === undefined ? [] : getPlan(graph).toolNodes.map(({ registry }) => registry))];
  return (name) => {
    for (const registry of registries) {
      const policy = registry.get(name)?.spec.safety.redact;
      if (policy !== undefined) return policy;
    }
    return undefined;
  };
}
