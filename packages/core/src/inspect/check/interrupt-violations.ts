/** The questions that a graph declares: who may ask each, and whether a person can answer it. */
import { describeThrown } from "../../base/errors.ts";
import { isPlainObject } from "../../base/json.ts";
import { muteness } from "../../compile/node-declarations.ts";
import type { NodeRecord } from "../../define/graph.ts";
import { jsonSchemaOf } from "../../tool/definition/model-tool.ts";
import { answerSchema, expiryOf, type InterruptDeclaration } from "../../tool/policy/interrupt.ts";
import { nameIn, pathTo, type Site } from "./checked-graph.ts";
import type { GraphRule, GraphViolation } from "./report.ts";

/** Questions that nobody asks, that no answer fits, and whose answer no person can see. */
export function questionFaults(site: Site): GraphViolation[] {
  return Object.entries(site.plan.graph.interrupts).flatMap(([key, declared]): GraphViolation[] => {
    if (![...site.plan.nodes.values()].some((node) => mayAsk(node, key)))
      return [
        {
          rule: "unasked_interrupt",
          path: site.way.length === 0 ? ["start"] : site.way,
          message: `no node asks "${nameIn(site, key)}": every node that could says that it asks something else; add the key to the asks of a node, or remove the interrupt`,
        },
      ];
    const fault = faultOf(nameIn(site, key), declared);
    const path = fault === undefined ? undefined : wayToQuestion(site, key);
    return fault === undefined || path === undefined ? [] : [{ ...fault, path }];
  });
}

/** Where a question is asked first. */
function wayToQuestion(site: Site, key: string): readonly string[] | undefined {
  for (const state of site.walk.states) {
    for (const { node } of state.pending) {
      const record = site.plan.nodes.get(node);
      if (record === undefined || !mayAsk(record, key) || record.kind === "tools") continue;
      return [...pathTo(site, state), `(${nameIn(site, node)} asks "${nameIn(site, key)}")`];
    }
  }
  return undefined;
}

/** A node that does not say what it asks may ask anything; what the middleware of a tool node asks cannot be known. */
function mayAsk(node: NodeRecord, key: string): boolean {
  if (node.kind === "tools") return true;
  if (muteness(node) !== undefined && node.policy.onError === undefined) return false;
  return node.policy.asks?.includes(key) ?? true;
}

interface Fault {
  readonly rule: GraphRule;
  readonly message: string;
}

function faultOf(key: string, declared: InterruptDeclaration): Fault | undefined {
  const schema = answerSchema(declared);
  const said = jsonSchemaOf(schema);
  if (acceptsNothing(said))
    return {
      rule: "unanswerable_interrupt",
      message: `the interrupt "${key}" ${expiryOf(declared) === undefined ? "waits for ever once it is asked" : "can only expire"}: the schema of its answer accepts nothing`,
    };
  try {
    if (jsonSchemaOf(schema, "throw") !== undefined) return undefined;
  } catch (thrown) {
    return unseen(key, `JSON Schema cannot say a part of it (${describeThrown(thrown)})`);
  }
  return unseen(key, "its schema gives no JSON Schema");
}

function unseen(key: string, why: string): Fault {
  return {
    rule: "unseen_answer",
    message: `who answers "${key}" is not shown what fits: ${why}; describe the answer as it is sent, and make of it what the node needs with a transform`,
  };
}

/** Whether a JSON Schema surely accepts nothing. */
function acceptsNothing(schema: unknown): boolean {
  if (schema === false) return true;
  if (!isPlainObject(schema)) return false;
  const { not, enum: values, anyOf, allOf, properties, required } = schema;
  const isEmpty = (list: unknown): boolean => Array.isArray(list) && list.length === 0;
  if ((isPlainObject(not) && Object.keys(not).length === 0) || isEmpty(values)) return true;
  if (Array.isArray(anyOf) && anyOf.every(acceptsNothing)) return true;
  if (Array.isArray(allOf) && allOf.some(acceptsNothing)) return true;
  return (
    Array.isArray(required) && isPlainObject(properties) && required.some((key) => acceptsNothing(properties[key]))
  );
}
