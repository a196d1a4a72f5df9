/** Checks the declared interrupts of a graph: nodes that may raise each interrupt, and whether a person can answer. */
import { describeThrown } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import type { NodeRecord } from "../../define/graph.ts";
import { toJsonSchema } from "../../tool/definition/model-tool.ts";
import { getAnswerSchema, type InterruptDeclaration, parseExpiry } from "../../tool/policy/interrupt.ts";
import { type CheckedGraph, getPath, toQualifiedName } from "./checked-graph.ts";
import type { GraphRule, GraphViolation } from "./report.ts";

/**
 * Returns violations of declared interrupts: unused, without a valid answer, or without a JSON Schema for the answer.
 */
export function findInterruptViolations(checked: CheckedGraph): GraphViolation[] {
  return Object.entries(checked.plan.graph.interrupts).flatMap(([key, declared]): GraphViolation[] => {
    if (![...checked.plan.nodes.values()].some((node) => canInterrupt(node, key)))
      return [
        {
          rule: "unused_interrupt",
          path: checked.entryPath.length === 0 ? ["start"] : checked.entryPath,
          message: `no node raises the interrupt "${toQualifiedName(checked, key)}": every node that could declares other interrupts; add the key to the interrupts of a node, or remove the interrupt`,
        },
      ];
    const violation = findSchemaViolation(toQualifiedName(checked, key), declared);
    const path = violation === undefined ? undefined : findInterruptPath(checked, key);
    return violation === undefined || path === undefined ? [] : [{ ...violation, path }];
  });
}

/** Returns the shortest path to a node that may raise an interrupt. */
function findInterruptPath(checked: CheckedGraph, key: string): readonly string[] | undefined {
  for (const state of checked.exploration.states) {
    for (const { node } of state.pending) {
      const record = checked.plan.nodes.get(node);
      if (record === undefined || !canInterrupt(record, key) || !record.logic.raisesDeclared) continue;
      return [
        ...getPath(checked, state),
        `(${toQualifiedName(checked, node)} asks "${toQualifiedName(checked, key)}")`,
      ];
    }
  }
  return undefined;
}

/** A node without declared interrupts may raise any interrupt; interrupts of tool node middleware are unknown. */
function canInterrupt(node: NodeRecord, key: string): boolean {
  if (!node.logic.raisesDeclared) return true;
  if (node.logic.getInterruptObstacle(node) !== undefined && node.policy.onError === undefined) return false;
  return node.policy.interrupts?.includes(key) ?? true;
}

interface SchemaViolation {
  readonly rule: GraphRule;
  readonly message: string;
}

function findSchemaViolation(key: string, declared: InterruptDeclaration): SchemaViolation | undefined {
  const schema = getAnswerSchema(declared);
  const jsonSchema = toJsonSchema(schema);
  if (isUnsatisfiable(jsonSchema))
    return {
      rule: "unanswerable_interrupt",
      message: `the interrupt "${key}" ${parseExpiry(declared) === undefined ? "waits forever" : "can only expire"}: the schema of its answer accepts no value`,
    };
  try {
    if (toJsonSchema(schema, "throw") !== undefined) return undefined;
  } catch (thrown) {
    return createUnseenAnswerViolation(key, `JSON Schema cannot represent a part of it (${describeThrown(thrown)})`);
  }
  return createUnseenAnswerViolation(key, "its schema has no JSON Schema");
}

function createUnseenAnswerViolation(key: string, reason: string): SchemaViolation {
  return {
    rule: "undescribed_answer",
    message: `the valid answers of "${key}" cannot be shown to a person: ${reason}; describe the answer as sent, and convert it with a transform`,
  };
}

/** Returns true if a JSON Schema certainly accepts no value. */
function isUnsatisfiable(schema: unknown): boolean {
  if (schema === false) return true;
  if (!isPlainObject(schema)) return false;
  const { not, enum: values, anyOf, allOf, properties, required } = schema;
  const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;
  if ((isPlainObject(not) && Object.keys(not).length === 0) || isEmpty(values)) return true;
  if (Array.isArray(anyOf) && anyOf.every(isUnsatisfiable)) return true;
  if (Array.isArray(allOf) && allOf.some(isUnsatisfiable)) return true;
  return (
    Array.isArray(required) && isPlainObject(properties) && required.some((key) => isUnsatisfiable(properties[key]))
  );
}
