/** Policies of an agent apply to its sub-agents in every form. */
import { agentTool, createAgent, handoff, team } from "@statewright/agent";
import {
  confinePaths,
  dryRun,
  guardUntrusted,
  limitCalls,
  limitRate,
  redactSecrets,
  refuseUnclassified,
} from "@statewright/agent/middleware";
import {
  approval,
  channel,
  defineGraph,
  defineMiddleware,
  defineState,
  END,
  getMessageText,
  type Message,
  type Middleware,
  type ModelRequest,
  memoryStore,
  resume,
  run,
  START,
  type Store,
  subgraph,
  type Tool,
  toolNode,
} from "@statewright/core";
import {
  call,
  type ScriptedEntry,
  say,
  scriptedModel,
  stall,
  type VirtualClock,
  virtualClock,
} from "@statewright/testing";
import { describe, expect, test } from "vitest";
import { createRecordingTool } from "../support/desk.ts";

const ping = call("ping", {});

interface Parts {
  readonly middleware: readonly Middleware[];
  readonly tools: readonly Tool[];
  /** Script of the model of each sub-agent. */
  readonly script: readonly ScriptedEntry[];
  readonly own?: readonly Middleware[];
  readonly store?: Store;
  readonly world?: VirtualClock;
  readonly count?: number;
}

/** Agent whose model restarts its script per conversation, so that one script serves parallel sub-agents. */
function worker({ tools, script, own = [] }: Parts) {
  return createAgent({
    name: "worker",
    model: scriptedModel((request) => {
      const turn = request.messages.filter(({ role }) => role === "assistant").length;
      const entry = script[turn] ?? say("done");
      return typeof entry === "function" ? entry(request) : entry;
    }),
    tools,
    middleware: own,
  });
}

/** A calling agent with `count` parallel sub-agents as tools. */
function createBoss(parts: Parts) {
  const { middleware, store = memoryStore(), count = 1 } = parts;
  return createAgent({
    name: "boss",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? say("all done")
        : Array.from({ length: count }, (_, nth) => call("worker", { task: `part ${nth}` })),
    ),
    tools: [agentTool(worker(parts), { description: "Works.", safety: { access: "read" } }), ...parts.tools],
    middleware,
    store,
  });
}

const go = { thread: "t", input: "go" };
const asked = { messages: [{ role: "user", id: "u", content: [{ type: "text", text: "go" }] }] } as const;

/** All forms of sub-agents, each run to its end. */
const forms: Readonly<Record<string, (parts: Parts) => Promise<{ readonly state: object }>>> = {
  "a tool": (parts) => createBoss(parts).run(go).result,
  "tools side by side": (parts) => createBoss({ ...parts, count: 3 }).run(go).result,
  "a node of a graph": (parts) => {
    const channels = Object.assign({}, ...parts.middleware.map((each) => each.channels));
    const graph = defineGraph({
      name: "desk",
      state: defineState({ ...channels, messages: channel.messages() }),
      middleware: parts.middleware as never,
    })
      .nodes({
        worker: subgraph(worker(parts) as never, { input: () => asked, output: () => ({}) } as never),
      } as never)
      .edges({ [START]: "worker", worker: END } as never);
    return run(graph, { thread: "t", input: asked, store: memoryStore() } as never).result as never;
  },
  "one that the conversation is handed to": (parts) => {
    const triage = createAgent({
      name: "triage",
      model: scriptedModel([call("transfer_to_worker", {})]),
      tools: [handoff("worker")],
    });
    const rest = { ...parts, script: [say(""), ...parts.script] as readonly ScriptedEntry[] };
    return team({
      name: "office",
      agents: [triage, worker(rest)],
      middleware: parts.middleware,
      store: memoryStore(),
    }).run(go).result;
  },
  "the sub-agent of one that the conversation is handed to": (parts) => {
    const lead = createAgent({
      name: "lead",
      model: scriptedModel([call("worker", { task: "go" }), say("all done")]),
      tools: [agentTool(worker(parts), { description: "Works.", safety: { access: "read" } })],
      middleware: parts.middleware,
    });
    return team({ name: "office", agents: [lead], store: memoryStore() }).run(go).result;
  },
};

describe.each(Object.entries(forms))("a sub-agent that is %s", (_, form) => {
  test("limitCalls of the calling agent applies to a sub-agent, and all calls count together [T54]", async () => {
    const log: string[] = [];
    const { state } = await form({
      middleware: [limitCalls({ tools: { ping: { perRun: 2 } } })],
      tools: [createRecordingTool(log, "ping") as Tool],
      script: [ping, [ping, ping], ping],
    });
    expect(log).toEqual(["ping", "ping"]);
    expect(state).toMatchObject({ callCounts: { inRun: { ping: 2 }, thread: { ping: 2 } } });
  });

  test("limitRate of the calling agent applies to a sub-agent [T54]", async () => {
    const log: string[] = [];
    await form({
      middleware: [limitRate({ calls: 2, perMs: 86_400_000, tools: ["ping"], atLimit: "refuse" })],
      tools: [createRecordingTool(log, "ping") as Tool],
      script: [[ping, ping, ping]],
    });
    expect(log).toEqual(["ping", "ping"]);
  });

  test("guardUntrusted of the calling agent records external content of a sub-agent and disables risky tools [T54]", async () => {
    const log: string[] = [];
    const tools = [
      createRecordingTool(log, "fetch_page", { safety: { access: "read", network: true } }),
      createRecordingTool(log, "send_mail", { safety: { access: "write" } }),
    ] as readonly Tool[];
    const { state } = await form({
      middleware: [guardUntrusted({ action: "refuse" })],
      tools,
      script: [
        call("send_mail", { text: "before" }),
        [call("fetch_page", {}), call("fetch_page", {})],
        call("send_mail", {}),
      ],
    });
    expect(new Set(log)).toEqual(new Set(["send_mail before", "fetch_page"]));
    expect(state).toMatchObject({ untrustedFrom: ["fetch_page"] });
  });

  test("calls of unclassified tools and paths outside the workspace are refused inside a sub-agent [T54]", async () => {
    const log: string[] = [];
    const place = async (_root: string, path: string) => (path.startsWith("..") ? undefined : path);
    const save = createRecordingTool(log, "save", { safety: { access: "write", filesystem: "write" } });
    await form({
      middleware: [
        refuseUnclassified(),
        confinePaths({ root: "/work", resolvePath: place, paths: { save: ["text"] } }),
      ],
      tools: [createRecordingTool(log, "mystery"), save] as readonly Tool[],
      script: [[call("mystery", {}), call("save", { text: "../a" }), call("save", { text: "b" })]],
    });
    expect(new Set(log)).toEqual(new Set(["save b"]));
  });

  test("redactSecrets redacts results of a sub-agent, and dryRun executes no effect inside a sub-agent [T54]", async () => {
    const log: string[] = [];
    const observed: string[] = [];
    const reads = ({ messages }: ModelRequest) => {
      observed.push(...messages.flatMap((message) => (message.role === "tool" ? [getMessageText(message)] : [])));
      return say("done");
    };
    await form({
      middleware: [redactSecrets({ texts: ["tok-12345"] }), dryRun({ mayRun: ({ name }) => name !== "write" })],
      tools: [
        createRecordingTool(log, "leak", { gives: "key tok-12345" }),
        createRecordingTool(log, "write"),
      ] as readonly Tool[],
      script: [[call("leak", {}), call("write", {})], reads],
    });
    expect(new Set(log)).toEqual(new Set(["leak"]));
    expect(observed.join()).toContain("key [redacted]");
    expect(observed.join()).not.toContain("tok-12345");
  });
});

test("limits of a sub-agent count only its own calls, in addition to limits of the calling agent", async () => {
  for (const [outer, inner, made] of [
    [5, 2, 4],
    [3, 2, 3],
  ] as const) {
    const log: string[] = [];
    const agent = createBoss({
      middleware: [limitCalls({ tools: { ping: { perRun: outer } } })],
      own: [limitCalls({ perRun: inner })],
      tools: [createRecordingTool(log, "ping") as Tool],
      script: [ping, ping, ping],
      count: 2,
    });
    const { state } = await agent.run(go).result;
    expect(log).toHaveLength(made);
    expect(state).toMatchObject({ callCounts: { inRun: { ping: made, worker: 2 } } });
  }
});

test("a limitCalls shared with a sub-agent counts a call once, and tree false excludes sub-agents", async () => {
  for (const tree of [true, false]) {
    const log: string[] = [];
    const limit = limitCalls({ tools: { ping: { perThread: 2 } }, tree });
    const parts = {
      middleware: [limit],
      tools: [createRecordingTool(log, "ping") as Tool],
      script: [ping, ping, ping],
    };
    await createBoss({ ...parts, own: tree ? [limit] : [] }).run(go).result;
    expect(log).toHaveLength(tree ? 2 : 3);
  }
});

test("an ending limit of the calling agent ends the run from inside a sub-agent, and one of the sub-agent ends its call", async () => {
  const limit = limitCalls({ tools: { ping: { perRun: 1 } }, atLimit: "end" });
  const parts = { tools: [createRecordingTool([], "ping") as Tool], script: [ping, ping] };
  expect(await createBoss({ ...parts, middleware: [limit] }).run(go).result).toMatchObject({
    status: "cancelled",
    reason: 'The limit of 1 calls of "ping" in this run is reached.',
  });
  expect((await createBoss({ ...parts, middleware: [], own: [limit] }).run(go).result).status).toBe("done");
});

test("calls made by sub-agents before a crash count after the resume, each once", async () => {
  const log: string[] = [];
  const store = memoryStore();
  const parts: Parts = {
    middleware: [
      limitCalls({ tools: { ping: { perRun: 3 } } }),
      guardUntrusted({ action: "refuse", isHarmful: ({ name }) => name === "send_mail" }),
    ],
    tools: [
      createRecordingTool(log, "ping", { safety: { access: "read", network: true } }),
      createRecordingTool(log, "send_mail", { safety: { access: "write" } }),
    ] as readonly Tool[],
    script: [[ping, ping], ping, [ping, call("send_mail", {})]],
  };
  const world = virtualClock();
  const dies: readonly ScriptedEntry[] = [[ping, ping], stall()];
  void createBoss({ ...parts, script: dies, store })
    .run({ ...go, world })
    .result.catch(() => "died");
  await world.waitUntilIdle();
  expect(log).toEqual(["ping", "ping"]);
  store.crash();
  const again = createBoss({ ...parts, store: store.peer() });
  const { state } = await again.resume({ thread: "t" }).result;
  expect(log).toEqual(["ping", "ping", "ping"]);
  expect(state).toMatchObject({ callCounts: { inRun: { ping: 3 } }, untrustedFrom: ["ping"] });
});

test("inherited limits on sub-agents add no commits", async () => {
  const countCommits = async (middleware: readonly Middleware[]): Promise<number> => {
    let commits = 0;
    const memory = memoryStore();
    const commit: Store["commit"] = (write, onCommitted) => {
      commits += 1;
      memory.commit(write, onCommitted);
    };
    const tools = [createRecordingTool([], "ping", { safety: { access: "read", network: true } }) as Tool];
    await createBoss({ middleware, tools, script: [ping, [ping, ping], ping], store: { ...memory, commit } }).run(go)
      .result;
    return commits;
  };
  const policies = [
    limitCalls({ perRun: 50 }),
    limitRate({ calls: 50, perMs: 1_000 }),
    guardUntrusted({ isHarmful: () => false }),
  ];
  expect(await countCommits(policies)).toBe(await countCommits([]));
});

test("a risky call inside a graph that declares no interrupts is interrupted for approval", async () => {
  const log: string[] = [];
  const guard = guardUntrusted();
  const sending = defineGraph({ name: "sending", state: defineState({ messages: channel.messages() }) })
    .nodes({
      tools: toolNode({ tools: [createRecordingTool(log, "send_mail", { safety: { access: "write" } }) as Tool] }),
    })
    .edges({ [START]: "tools", tools: END });
  const desk = defineGraph({
    name: "desk",
    state: defineState({ ...guard.channels, messages: channel.messages() }) as never,
    interrupts: { approve: approval },
    middleware: [guard],
  })
    .nodes({
      sending: subgraph(sending, {
        input: () => ({
          messages: [
            {
              role: "assistant",
              id: "a",
              content: [{ type: "call", id: "c", name: "send_mail", args: {} }],
              finish: "calls",
            },
          ],
        }),
        output: () => ({}),
      } as never),
    } as never)
    .edges({ [START]: "sending", sending: END } as never);
  const store = memoryStore();
  const input = { untrustedFrom: ["fetch_page"], messages: [] as readonly Message[] };
  const first = await run(desk as never, { thread: "t", store, input } as never).result;
  const [open] = first.status === "waiting" ? first.interrupts : [];
  expect([open?.key, log]).toEqual(["sending.approve", []]);
  await resume(desk as never, { thread: "t", store, answers: { "sending.approve": true } } as never).result;
  expect(log).toEqual(["send_mail"]);
});

test("parallel calls of sub-agents wait for their turn under both rate limits", async () => {
  const world = virtualClock();
  const began = world.clock.now();
  const times: number[] = [];
  const timed = defineMiddleware({
    name: "timed",
    beforeTool: () => {
      times.push(world.clock.now() - began);
      return undefined;
    },
  });
  const { result } = createBoss({
    middleware: [limitRate({ calls: 1, perMs: 1_000, tools: ["ping"] })],
    own: [limitRate({ calls: 5, perMs: 5_000, tools: ["ping"] }), timed],
    tools: [createRecordingTool([], "ping") as Tool],
    script: [ping, ping],
    count: 3,
  }).run({ ...go, world });
  await world.advance(20_000);
  await result;
  expect(times).toEqual([0, 1_000, 2_000, 3_000, 4_000, 5_000]);
  expect(world.timers).toBe(0);
});
