/** What was declared as nodes and edges, looked at as a program without types may give it: every problem, none of them twice. */

import { checkAnswersAtOnce } from "../base/async-schema.ts";
import { StatewrightError } from "../base/errors.ts";
import { describeValue, isPlainObject } from "../base/json.ts";
import { checkEffect, checkOptions, optionNames } from "../base/options.ts";
import { isSchema } from "../base/schema.ts";
import { type CachePolicy, policyNames } from "../define/node.ts";
import type { StateTypes } from "../state/definition.ts";
import { checkInterrupts, type InterruptShape } from "../tool/policy/interrupt.ts";
import { checkMiddleware } from "../tool/policy/middleware.ts";
import type { GraphDefaults, GraphOptions } from "./define-graph.ts";
import type { GraphProblem } from "./problem.ts";

/** The options of every node with a policy. */
const nodeOptions: readonly string[] = ["run", ...policyNames];

/** Throws `invalid_graph` for what is no object of nodes, or of edges. */
export function checkMap(graph: string, what: "nodes" | "edges", declared: unknown): void {
  if (isPlainObject(declared)) return;
  throw new StatewrightError("invalid_graph", {
    what: `the graph "${graph}" got ${describeValue(declared)} for its ${what}`,
    next: what === "nodes" ? "Give nodes({ name: body, … })" : 'Give edges({ [START]: "first", … })',
    place: { graph },
  });
}

/** What is wrong with a declared node; nothing where the engine can run it. */
export function nodeProblems(node: string, declared: unknown): readonly GraphProblem[] {
  if (typeof declared === "function") return [];
  const wrong = (message: string, hint: string): GraphProblem => ({ code: "not_a_node", node, message, hint });
  if (!isPlainObject(declared)) {
    const hint = "give a function, { run, … }, task(…), toolNode(…) or subgraph(…)";
    return [wrong(`the node "${node}" is ${describeValue(declared)}`, hint)];
  }
  const { kind } = declared;
  if (kind === "tools") {
    const made = isPlainObject(declared["registry"]) && Array.isArray(declared["middleware"]);
    return made ? [] : [wrong(`the tool node "${node}" was not made by toolNode`, "give toolNode({ tools })")];
  }
  if (kind === "task") checkAnswersAtOnce(declared["input"], `the input of the task node "${node}"`, { node });
  const problems: GraphProblem[] = [];
  if (typeof declared["run"] !== "function")
    problems.push(wrong(`the run of the node "${node}" is ${describeValue(declared["run"])}`, "give a function"));
  if (kind !== undefined && kind !== "task")
    problems.push(wrong(`the node "${node}" is of the kind ${describeValue(kind)}`, "make it with task or toolNode"));
  if (kind === "task" && !isSchema(declared["input"]))
    problems.push(
      wrong(`the input of the task node "${node}" is ${describeValue(declared["input"])}`, "give a zod schema"),
    );
  const known: readonly string[] = kind === undefined ? nodeOptions : [...nodeOptions, "kind", "input"];
  const unknown = Object.keys(declared).filter((key) => !known.includes(key));
  if (unknown.length > 0)
    problems.push({
      code: "unknown_option",
      node,
      message: `the node "${node}" has no option ${unknown.map((key) => `"${key}"`).join(", ")}`,
      hint: `options are ${nodeOptions.join(", ")}`,
    });
  return problems;
}

/** What is wrong with a declared edge; nothing where control can follow it. */
export function edgeProblems(source: string, declared: unknown): readonly GraphProblem[] {
  const wrong = (message: string, hint: string): GraphProblem[] => [
    { code: "not_an_edge", node: source, message, hint },
  ];
  const targets = (list: unknown): list is readonly string[] =>
    Array.isArray(list) && list.every((target) => typeof target === "string");
  const named = `the edge of "${source}"`;
  if (typeof declared === "string" || targets(declared)) return [];
  if (Array.isArray(declared)) {
    const odd = declared.find((target) => typeof target !== "string");
    return wrong(`${named} leads to ${describeValue(odd)}`, "a target is the name of a node, or END");
  }
  if (!isPlainObject(declared))
    return wrong(
      `${named} is ${describeValue(declared)}`,
      "give the name of a node, a list of names, END, or what route, sends, gotos or join make",
    );
  const { kind } = declared;
  if (kind === "route") {
    if (!targets(declared["targets"]))
      return wrong(`the targets of the route after "${source}" are no list of names`, "give route([…], choose)");
    return typeof declared["choose"] === "function"
      ? []
      : wrong(
          `the route after "${source}" chooses by ${describeValue(declared["choose"])}`,
          "give a function of the state",
        );
  }
  if (kind === "sends") {
    if (typeof declared["target"] !== "string" || !["string", "undefined"].includes(typeof declared["otherwise"]))
      return wrong(`the sends after "${source}" lead to what is no name`, 'give sends("node", select)');
    return typeof declared["select"] === "function"
      ? []
      : wrong(
          `the sends after "${source}" select by ${describeValue(declared["select"])}`,
          "give a function of the state",
        );
  }
  if (kind === "gotos") {
    return targets(declared["targets"]) ? [] : wrong(`the gotos of "${source}" are no names`, 'give gotos("node", …)');
  }
  if (kind === "join")
    return typeof declared["target"] === "string"
      ? []
      : wrong(`the join of "${source}" leads to ${describeValue(declared["target"])}`, 'give join("node")');
  return wrong(`${named} is an object that none of route, sends, gotos and join made`, "make it with one of them");
}

const graphNames = optionNames<GraphOptions<StateTypes, unknown, unknown, InterruptShape, never, unknown, unknown>>({
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
});
const defaultNames = optionNames<GraphDefaults<StateTypes, unknown, InterruptShape>>({
  retry: true,
  timeoutMs: true,
  idleTimeoutMs: true,
  onError: true,
});

/** Throws `invalid_option` or `invalid_state` for what `defineGraph` cannot take, whatever the nodes will be. */
export function checkGraphOptions(options: unknown): void {
  checkOptions("defineGraph", options, graphNames);
  const { name, state, context, interrupts, inbox, middleware, defaults, input, output } = options as Readonly<
    Record<string, unknown>
  >;
  const graph = `the graph ${describeValue(name)}`;
  if (!isPlainObject(state) || !isPlainObject(state["channels"])) {
    throw new StatewrightError("invalid_state", {
      what: `the state of ${graph} is ${describeValue(state)}, which defineState did not make`,
      next: "Give state: defineState({ name: schema, … })",
    });
  }
  if (context !== undefined && (!isPlainObject(context) || !isSchema(context["schema"]))) {
    throw new StatewrightError("invalid_option", {
      what: `the context of ${graph} is ${describeValue(context)}, which defineContext did not make`,
      next: "Give context: defineContext({ name: schema, … })",
    });
  }
  for (const [option, schema] of Object.entries({ input, output })) {
    checkAnswersAtOnce(schema, `the ${option} of ${graph}`);
    if (schema === undefined || isSchema(schema)) continue;
    throw new StatewrightError("invalid_option", {
      what: `the ${option} of ${graph} is ${describeValue(schema)}, which is not a schema`,
      next: "Give a zod schema",
    });
  }
  checkInterrupts(graph, interrupts);
  if (inbox !== undefined && inbox !== "one" && inbox !== "all") {
    throw new StatewrightError("invalid_option", {
      what: `the inbox of ${graph} is ${describeValue(inbox)}`,
      next: 'Give "all" or "one"',
    });
  }
  if (middleware !== undefined) checkMiddleware(middleware);
  if (defaults !== undefined) checkOptions(`the defaults of ${graph}`, defaults, defaultNames);
}

const cacheNames = optionNames<CachePolicy<unknown>>({ key: true, ttlMs: true, store: true });

/** Throws `invalid_option` for what the policy of a node, or the defaults of a graph, cannot mean. */
export function checkPolicyKinds(
  owner: string,
  policy: { readonly [Option in "effect" | "defer" | "cache" | "onError" | "asks" | "writes"]?: unknown },
): void {
  const { effect, defer, cache, onError, asks, writes } = policy;
  for (const [option, names] of Object.entries({ asks, writes }))
    if (names !== undefined && !Array.isArray(names))
      throw unfit(`the option ${option} of ${owner}`, names, "a list of names");
  checkEffect(owner, effect);
  if (defer !== undefined && typeof defer !== "boolean")
    throw unfit(`the option defer of ${owner}`, defer, "true or false");
  if (onError !== undefined && typeof onError !== "function")
    throw unfit(`the option onError of ${owner}`, onError, "a function of the state and the failure");
  if (cache === undefined) return;
  checkOptions(`the cache of ${owner}`, cache, cacheNames);
  const { key, store } = cache as Readonly<Record<string, unknown>>;
  if (typeof key !== "function") throw unfit(`the key of the cache of ${owner}`, key, "a function of the state");
  if (store !== undefined && !["get", "put", "delete"].every((name) => isMethod(store, name)))
    throw unfit(`the store of the cache of ${owner}`, store, "memoryCache(), or an object with get, put and delete");
}

function isMethod(owner: unknown, name: string): boolean {
  return typeof owner === "object" && owner !== null && typeof Reflect.get(owner, name) === "function";
}

function unfit(what: string, given: unknown, wanted: string): StatewrightError {
  return new StatewrightError("invalid_option", { what: `${what} is ${describeValue(given)}`, next: `Give ${wanted}` });
}
