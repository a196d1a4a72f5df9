/**
 * Validates declared nodes, edges and options at runtime, for programs without types: each problem is reported once.
 */

import { checkSyncSchema } from "../base/async-schema.ts";
import { StatewrightError } from "../base/errors.ts";
import { invalidOption } from "../base/invalid-option.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import {
  checkChoice,
  checkEffect,
  checkFlag,
  checkFunction,
  checkNumber,
  checkOptions,
  listOptionNames,
} from "../base/options.ts";
import { isSchema } from "../base/schema.ts";
import type { CachePolicy } from "../define/node.ts";
import type { GraphProblem } from "../define/problem.ts";
import { checkModels } from "../model/model-source.ts";
import type { StateTypes } from "../state/definition.ts";
import { checkInterrupts, type InterruptShape } from "../tool/policy/interrupt.ts";
import { checkMiddleware } from "../tool/policy/middleware.ts";
import type { GraphDefaults, GraphOptions, ToolDefaults } from "./graph.ts";

/** Throws `invalid_graph` if the nodes or edges are not a plain object. */
export function checkDeclaredObject(graph: string, what: "nodes" | "edges", declared: unknown): void {
  if (isPlainObject(declared)) return;
  throw new StatewrightError("invalid_graph", {
    what: `graph "${graph}": expected an object for its ${what}, got ${describeValue(declared)}`,
    next: what === "nodes" ? "Pass nodes({ name: body, … })" : 'Pass edges({ [START]: "first", … })',
    place: { graph },
  });
}

/** Returns the problems of a declared edge; empty if the edge is valid. */
export function findEdgeProblems(source: string, declared: unknown): readonly GraphProblem[] {
  const createProblems = (message: string, hint: string): GraphProblem[] => [
    { code: "not_an_edge", node: source, message, hint },
  ];
  const isNameList = (list: unknown): list is readonly string[] =>
    Array.isArray(list) && list.every((target) => typeof target === "string");
  const subject = `the edge from "${source}"`;
  if (typeof declared === "string" || isNameList(declared)) return [];
  if (Array.isArray(declared)) {
    const invalid = declared.find((target) => typeof target !== "string");
    return createProblems(`${subject} leads to ${describeValue(invalid)}`, "use the name of a node, or END");
  }
  if (!isPlainObject(declared))
    return createProblems(
      `${subject} is ${describeValue(declared)}`,
      "pass a node name, a list of node names, END, or the result of route, fanOut, commandTargets or join",
    );
  const { kind } = declared;
  if (kind === "route") {
    if (!isNameList(declared["targets"]))
      return createProblems(
        `the targets of the route from "${source}" are not a list of names`,
        "pass route([…], choose)",
      );
    return typeof declared["choose"] === "function"
      ? []
      : createProblems(
          `the choose of the route from "${source}" is ${describeValue(declared["choose"])}`,
          "pass a function of the state",
        );
  }
  if (kind === "fanOut") {
    if (typeof declared["target"] !== "string" || !["string", "undefined"].includes(typeof declared["otherwise"]))
      return createProblems(
        `the target of the fanOut from "${source}" is not a node name`,
        'pass fanOut("node", select)',
      );
    return typeof declared["select"] === "function"
      ? []
      : createProblems(
          `the select of the fanOut from "${source}" is ${describeValue(declared["select"])}`,
          "pass a function of the state",
        );
  }
  if (kind === "commandTargets") {
    return isNameList(declared["targets"])
      ? []
      : createProblems(`the command targets of "${source}" are not node names`, 'pass commandTargets("node", …)');
  }
  if (kind === "join")
    return typeof declared["target"] === "string"
      ? []
      : createProblems(`the join from "${source}" leads to ${describeValue(declared["target"])}`, 'pass join("node")');
  return createProblems(
    `${subject} is an object not created by route, fanOut, commandTargets or join`,
    "create the edge with one of these functions",
  );
}

const graphNames = listOptionNames<GraphOptions<StateTypes, unknown, unknown, InterruptShape, never, unknown, unknown>>(
  {
    name: true,
    version: true,
    state: true,
    context: true,
    interrupts: true,
    input: true,
    output: true,
    private: true,
    inbox: true,
    middleware: true,
    defaults: true,
    models: true,
  },
);
const defaultNames = listOptionNames<GraphDefaults<StateTypes, unknown, InterruptShape>>({
  retry: true,
  timeoutMs: true,
  idleTimeoutMs: true,
  onError: true,
  tools: true,
});
const toolDefaultNames = listOptionNames<ToolDefaults>({ timeoutMs: true });

/** Throws `invalid_option` or `invalid_state` for invalid options of `defineGraph`, independent of the nodes. */
export function checkGraphOptions(options: unknown): void {
  checkOptions("defineGraph", options, graphNames);
  const { name, state, context, interrupts, inbox, middleware, defaults, input, output, models } = options as Readonly<
    Record<string, unknown>
  >;
  const graph = `the graph ${describeValue(name)}`;
  if (!isPlainObject(state) || !isPlainObject(state["channels"])) {
    throw new StatewrightError("invalid_state", {
      what: `${graph}: \`state\` must be a result of defineState, got ${describeValue(state)}`,
      next: "Pass state: defineState({ name: schema, … })",
    });
  }
  if (context !== undefined && (!isPlainObject(context) || !isSchema(context["schema"])))
    throw invalidOption({
      where: graph,
      option: "context",
      expected: "a result of defineContext",
      got: context,
      fix: "Pass context: defineContext({ name: schema, … })",
    });
  for (const [option, schema] of Object.entries({ input, output })) {
    checkSyncSchema(schema, `the ${option} of ${graph}`);
    if (schema !== undefined && !isSchema(schema))
      throw invalidOption({ where: graph, option, expected: "a schema", got: schema, fix: "Pass a zod schema" });
  }
  checkInterrupts(graph, interrupts);
  checkModels(graph, models);
  if (inbox !== undefined) checkChoice(graph, { inbox }, ["all", "one"]);
  if (middleware !== undefined) checkMiddleware(middleware);
  if (defaults !== undefined) checkDefaults(graph, defaults);
}

function checkDefaults(graph: string, defaults: unknown): void {
  checkOptions(`the defaults of ${graph}`, defaults, defaultNames);
  const { tools } = defaults as GraphDefaults<StateTypes, unknown, InterruptShape>;
  if (tools === undefined) return;
  checkOptions(`the tool defaults of ${graph}`, tools, toolDefaultNames);
  checkNumber(graph, { "defaults.tools.timeoutMs": tools.timeoutMs }, 1);
}

const cacheNames = listOptionNames<CachePolicy<unknown>>({ key: true, scope: true, ttlMs: true, store: true });

/** Throws `invalid_option` for invalid values in a node policy or in the defaults of a graph. */
export function checkPolicyValues(
  owner: string,
  policy: { readonly [Option in "effect" | "defer" | "cache" | "onError" | "interrupts" | "writes"]?: unknown },
): void {
  const { effect, defer, cache, onError, interrupts, writes } = policy;
  for (const [option, names] of Object.entries({ interrupts, writes }))
    if (names !== undefined && !Array.isArray(names))
      throw invalidOption({ where: owner, option, expected: "a list of names", got: names });
  checkEffect(owner, effect);
  if (defer !== undefined) checkFlag(owner, { defer });
  if (onError !== undefined && typeof onError !== "function")
    throw invalidOption({
      where: owner,
      option: "onError",
      expected: "a function of the state and the failure",
      got: onError,
    });
  if (cache === undefined) return;
  checkOptions(`the cache of ${owner}`, cache, cacheNames);
  const { key, scope, store } = cache as Readonly<Record<string, unknown>>;
  if (typeof key !== "function")
    throw invalidOption({ where: owner, option: "cache.key", expected: "a function of the state", got: key });
  checkFunction(owner, { "cache.scope": scope });
  if (store !== undefined && !["get", "put", "delete"].every((name) => isMethod(store, name)))
    throw invalidOption({
      where: owner,
      option: "cache.store",
      expected: "memoryCache(), or an object with get, put and delete",
      got: store,
    });
}

function isMethod(owner: unknown, name: string): boolean {
  return typeof owner === "object" && owner !== null && typeof Reflect.get(owner, name) === "function";
}
