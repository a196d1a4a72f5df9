/** Valid bodies of the LangGraph and AI SDK routes, from which the fuzz makes its requests. */
import type { Chance } from "@statewright/testing";

type Pick = (name: string) => string;
type BodyMaker = (pick: Pick, chance: Chance) => unknown;

const words = ["hello", "transfer", "lookup sea", "long", "fail"];

function createHumanInput(pick: Pick, chance: Chance): unknown {
  const content = chance.flip(0.7) ? chance.pick(words) : [{ type: "text", text: chance.pick(words) }];
  const id = chance.flip(0.5) ? { id: pick("message") } : {};
  const messages = [{ type: chance.pick(["human", "user", "ai", "tool", "system", "remove"]), content, ...id }];
  return chance.pick([
    { messages },
    { messages: messages[0] },
    { draft: "d" },
    { messages: [["human", "hello"]] },
    null,
  ]);
}

function createWireRun(pick: Pick, chance: Chance): unknown {
  const maybe = (part: object): object => (chance.flip(0.15) ? part : {});
  return {
    assistant_id: pick("graph"),
    input: createHumanInput(pick, chance),
    ...maybe({ stream_mode: chance.pick([["values", "messages-tuple"], ["updates"], "debug", ["tasks", "custom"]]) }),
    ...maybe({ command: { resume: createResume(pick, chance) }, input: null }),
    ...maybe({ command: { update: createHumanInput(pick, chance) } }),
    ...maybe({ checkpoint_id: pick("checkpoint") }),
    ...maybe({ checkpoint: { checkpoint_id: pick("checkpoint"), checkpoint_ns: "" } }),
    ...maybe({ multitask_strategy: chance.pick(["reject", "interrupt", "rollback", "enqueue"]) }),
    ...maybe({ interrupt_before: chance.pick(["*", ["ask"], ["unknown"]]) }),
    ...maybe({ config: { configurable: { thread_id: pick("thread"), user: "ann" }, metadata: { a: 1 } } }),
    ...maybe({ if_not_exists: chance.pick(["create", "reject"]) }),
    ...maybe({ stream_subgraphs: true, on_disconnect: "cancel", on_completion: "keep" }),
    ...maybe({ metadata: { note: "n" }, context: { user: "ann" } }),
  };
}

function createResume(pick: Pick, chance: Chance): unknown {
  return chance.pick([
    true,
    { decisions: [{ type: chance.pick(["approve", "reject", "edit", "respond"]) }] },
    { [pick("interrupt")]: true },
    { [pick("interrupt")]: { decisions: [{ type: "approve" }] } },
    "yes",
  ]);
}

function createCommand(pick: Pick, chance: Chance): unknown {
  const namespace: unknown[] = [];
  const answer = { namespace, interrupt_id: pick("interrupt"), response: createResume(pick, chance) };
  const [method, params] = chance.pick<readonly [string, unknown]>([
    ["run.start", createWireRun(pick, chance)],
    ["input.respond", answer],
    ["input.respond", { responses: [answer] }],
    ["input.inject", { namespace, message: { role: "user", content: "hello" } }],
    ["state.get", { namespace, checkpoint_id: pick("checkpoint") }],
    ["state.listCheckpoints", { namespace, limit: 3 }],
    ["state.fork", { checkpoint_id: pick("checkpoint"), input: createHumanInput(pick, chance) }],
    ["agent.getTree", {}],
    [chance.pick(["toString", "__proto__", "constructor", "subscription.subscribe", "hasOwnProperty"]), {}],
  ]);
  return { id: chance.getInteger(1_000), method, params };
}

function createSubscription(_pick: Pick, chance: Chance): unknown {
  const channels = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"];
  return {
    channels: [chance.pick(channels), chance.pick(channels), "custom:note"],
    namespaces: chance.pick([null, [], [[]], [["model"]], [["agent:1"]]]),
    depth: chance.getInteger(3),
    since: chance.pick([null, 0, 1_600_000, 3_200_017, 99_999_999_999]),
  };
}

const item: BodyMaker = (pick) => ({ namespace: ["notes", pick("key")], key: pick("key"), value: { a: 1 } });
const search: BodyMaker = (pick, chance) => ({
  metadata: { note: "n" },
  limit: chance.getInteger(20),
  offset: chance.getInteger(5),
  ids: [pick("thread")],
  status: chance.pick(["idle", "busy", "interrupted", "error"]),
  sort_by: chance.pick(["created_at", "updated_at", "thread_id", "status"]),
  sort_order: chance.pick(["asc", "desc"]),
  select: ["thread_id", "values"],
});

/** Makers of bodies, by the end of the path. The first that fits makes the body. */
const langGraphBodies: readonly (readonly [RegExp, BodyMaker])[] = [
  [/\/commands$/, createCommand],
  [/\/stream\/events$/, createSubscription],
  [/\/runs(?:\/stream|\/wait)?$/, createWireRun],
  [/\/runs\/batch$/, (pick, chance) => [createWireRun(pick, chance)]],
  [/\/runs\/:run\/cancel$/, () => ({})],
  [/\/threads\/(?:search|count)$/, search],
  [/\/threads\/prune$/, (pick) => ({ thread_ids: [pick("thread")], strategy: "keep_latest" })],
  [/\/threads$/, (pick) => ({ thread_id: pick("thread"), metadata: { note: "n" }, if_exists: "do_nothing" })],
  [/\/threads\/:thread$/, () => ({ metadata: { note: "other" } })],
  [
    /\/state$/,
    (pick, chance) => ({
      values: createHumanInput(pick, chance),
      as_node: chance.pick(["model", "ask", "__copy__", "nobody"]),
      checkpoint: { thread_id: pick("thread"), checkpoint_id: pick("checkpoint"), checkpoint_ns: "" },
    }),
  ],
  [/\/state\/checkpoint$/, (pick) => ({ checkpoint: { checkpoint_id: pick("checkpoint"), checkpoint_ns: "" } })],
  [
    /\/history$/,
    (pick, chance) => ({
      limit: chance.getInteger(30),
      before: chance.pick([null, pick("checkpoint"), { configurable: { checkpoint_id: pick("checkpoint") } }]),
      metadata: { source: "loop" },
    }),
  ],
  [/\/store\/items$/, item],
  [/\/store\/items\/search$/, () => ({ namespace_prefix: ["notes"], query: "a", filter: { a: { $gt: 0 } }, limit: 3 })],
  [/\/store\/namespaces$/, () => ({ prefix: ["notes"], suffix: ["x"], max_depth: 2, limit: 3, offset: 0 })],
  [/\/assistants/, () => ({ graph_id: "assistant", metadata: {}, limit: 5, offset: 0, name: "a" })],
];

/** Creates a body of a LangGraph route. */
export function createLangGraphBody(path: string, pick: Pick, chance: Chance): unknown {
  const [, make = () => ({})] = langGraphBodies.find(([pattern]) => pattern.test(path)) ?? [];
  return make(pick, chance);
}

/** Creates a body of an AI SDK route. */
export function createUiBody(path: string, pick: Pick, chance: Chance): unknown {
  if (path.endsWith("/stop")) return {};
  const text = { type: "text", text: chance.pick(words) };
  const file = { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAAA", filename: "a.png" };
  const approval = { id: pick("interrupt"), approved: chance.flip(0.5), reason: "because" };
  const state = chance.pick([
    "approval-responded",
    "output-available",
    "output-error",
    "input-available",
    "output-denied",
  ]);
  const tool = {
    type: chance.pick(["tool-transfer", "tool-lookup", "dynamic-tool", "tool-approve"]),
    toolName: "transfer",
    toolCallId: pick("call"),
    state,
    input: { to: "bob" },
    output: chance.pick<unknown>([true, { approved: true }, "text"]),
    errorText: "failed",
    approval,
  };
  const user = { id: pick("message"), role: "user", parts: [text, ...(chance.flip(0.1) ? [file] : [])] };
  const assistant = { id: pick("run"), role: "assistant", parts: [{ type: "step-start" }, tool, text] };
  const messages = chance.pick<readonly unknown[]>([
    [user],
    [user, assistant],
    [user, assistant, { ...user, id: "m9" }],
  ]);
  return {
    id: pick("thread"),
    messages,
    trigger: chance.pick(["submit-message", "submit-message", "regenerate-message"]),
    ...(chance.flip(0.3) ? { messageId: pick("message") } : {}),
    ...(chance.flip(0.1) ? { context: { user: "ann" } } : {}),
  };
}
