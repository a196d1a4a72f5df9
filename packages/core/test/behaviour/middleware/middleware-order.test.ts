import { describe, expect, test } from "vitest";
import * as z from "zod";
import {
  decide,
  defineMiddleware,
  defineTool,
  isStatewrightError,
  StatewrightError,
  ToolError,
  type ToolResult,
  type ToolSafety,
} from "../../../src/index.ts";
import {
  type ChatState,
  call,
  createRawCall,
  createToolLoop,
  type DeskContext,
  type DeskTool,
  getAnswerText,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../support/tool-loop.ts";
import { createVirtualWorld } from "../../support/virtual-world.ts";

const middlewareOf = defineMiddleware<DeskContext, ChatState>;

function adder(log: string[] = []): DeskTool {
  return defineTool({
    name: "add",
    description: "Add.",
    input: z.object({ a: z.number(), b: z.number().default(0) }),
    effect: "pure",
    run: ({ a, b }) => {
      log.push(`run ${a}+${b}`);
      return { content: `${a + b}` };
    },
  });
}

function createMarkingMiddleware(name: string, log: string[]) {
  return middlewareOf({
    name,
    beforeTool: () => void log.push(`before ${name}`) as undefined,
    aroundTool: async ({ call: made }, next) => {
      log.push(`enter ${name}`);
      const result = await next(made);
      log.push(`leave ${name}`);
      return result;
    },
    afterTool: () => void log.push(`after ${name}`) as undefined,
  });
}

test("before hooks run in order of registration, around hooks with the first outermost, after hooks in reverse order", async () => {
  const log: string[] = [];
  await runToolLoop({
    tools: [adder(log)],
    middleware: [createMarkingMiddleware("one", log), createMarkingMiddleware("two", log)],
    turns: [[call("add", { a: 1 })], ["ok"]],
  });
  expect(log).toEqual([
    "before one",
    "before two",
    "enter one",
    "enter two",
    "run 1+0",
    "leave two",
    "leave one",
    "after two",
    "after one",
  ]);
});

test("after hooks also see denied, unknown, malformed and answered tool calls, so that redaction cannot be bypassed", async () => {
  const seen: string[] = [];
  const audit = middlewareOf({
    name: "audit",
    afterTool: ({ call: made, result }) => {
      seen.push(`${made.id} ${result.error?.kind ?? "ok"}`);
      return { ...result, content: [{ type: "text", text: "[redacted]" }] };
    },
  });
  const gatekeeper = middlewareOf({
    name: "gatekeeper",
    beforeTool: ({ call: made }) =>
      made.id === "denied"
        ? decide.deny("not now SENTINEL")
        : made.id === "answered"
          ? decide.respond("SENTINEL")
          : undefined,
  });
  const done = await runToolLoop({
    tools: [adder()],
    middleware: [audit, gatekeeper],
    turns: [
      [
        call("add", { a: 1 }, "denied"),
        call("nope SENTINEL", {}, "unknown"),
        createRawCall("add", "{SENTINEL", "malformed"),
        call("add", { a: 1 }, "answered"),
      ],
      ["ok"],
    ],
  });
  expect(seen.sort()).toEqual(["answered ok", "denied denied", "malformed invalid_args", "unknown not_found"]);
  expect(listToolAnswers(done).map(getAnswerText)).toEqual(["[redacted]", "[redacted]", "[redacted]", "[redacted]"]);
  expect(
    listEvents(done, "tool.completed", "tool.failed")
      .map(({ callId }) => callId)
      .sort(),
  ).toEqual(["answered", "denied", "malformed", "unknown"]);
});

test("arguments changed by a hook are parsed again, reported by an event, and refused when invalid [K5, T18, D4]", async () => {
  const log: string[] = [];
  const doubling = middlewareOf({
    name: "doubling",
    beforeTool: ({ call: made }) =>
      made.id === "bad" ? decide.modify({ a: "SENTINEL" }) : decide.modify({ a: (made.args as { a: number }).a * 2 }),
  });
  const seenLater: unknown[] = [];
  const later = middlewareOf({
    name: "later",
    beforeTool: ({ call: made }) => void seenLater.push(made.args) as undefined,
    afterTool: ({ call: made }) => void seenLater.push(made.args) as undefined,
  });
  const done = await runToolLoop({
    tools: [adder(log)],
    middleware: [doubling, later],
    strategy: "sequential",
    turns: [[call("add", { a: 2 }, "good"), call("add", { a: 2 }, "bad")], ["ok"]],
  });
  expect(log).toEqual(["run 4+0"]);
  expect(seenLater).toEqual([
    { a: 4, b: 0 },
    { a: 4, b: 0 },
    { a: 2, b: 0 },
  ]);
  expect(listEvents(done, "tool.args_rewritten").map(({ callId, by, args }) => [callId, by, args])).toEqual([
    ["good", "doubling", { a: 4, b: 0 }],
  ]);
  const [, bad] = listToolAnswers(done);
  expect(bad?.isError).toBe(true);
  expect(getAnswerText(bad)).toMatch(/doubling.*a: .*expected number/);
  expect(getAnswerText(bad)).not.toContain("SENTINEL");
});

test("arguments replaced by an aroundTool hook are parsed again", async () => {
  const log: string[] = [];
  const hook = middlewareOf({
    name: "hook",
    aroundTool: ({ call: made }, next) =>
      next({ ...made, id: "other", args: made.id === "bad" ? { a: "x" } : { a: 40 } }),
  });
  const done = await runToolLoop({
    tools: [adder(log)],
    middleware: [hook],
    turns: [[call("add", { a: 1 }, "good"), call("add", { a: 1 }, "bad")], ["ok"]],
  });
  expect(log).toEqual(["run 40+0"]);
  expect(listToolAnswers(done).map(({ callId, isError }) => [callId, isError])).toEqual([
    ["good", false],
    ["bad", true],
  ]);
  expect(listEvents(done, "tool.args_rewritten").map(({ callId, args }) => [callId, args])).toEqual([
    ["good", { a: 40, b: 0 }],
  ]);
});

describe("edge cases of aroundTool hooks", () => {
  const result: Omit<ToolResult, "callId"> = {
    name: "wrong",
    content: [{ type: "text", text: "mine" }],
    isError: false,
    attempts: 0,
    elapsedMs: 0,
  };

  test("an aroundTool hook that does not call next answers for the tool under the id and name of the call", async () => {
    const log: string[] = [];
    const cache = middlewareOf({ name: "cache", aroundTool: async () => ({ ...result, callId: "wrong" }) });
    const done = await runToolLoop({
      tools: [adder(log)],
      middleware: [cache],
      turns: [[call("add", { a: 1 }, "c1")], ["ok"]],
    });
    expect(log).toEqual([]);
    expect(listToolAnswers(done)[0]).toMatchObject({
      callId: "c1",
      name: "add",
      content: [{ type: "text", text: "mine" }],
    });
    expect(listResults(done)[0]).toMatchObject({ callId: "c1", name: "add" });
  });

  test("an aroundTool hook that calls next twice runs the tool twice under one idempotency key, and the call has one answer", async () => {
    const keys: string[] = [];
    const tool = defineTool({
      name: "flaky",
      description: "Flaky.",
      input: z.object({}),
      effect: "idempotent",
      run: (_args, { idempotencyKey }) => {
        keys.push(idempotencyKey);
        return keys.length === 1 ? Promise.reject(new Error("first")) : "second";
      },
    });
    const again = middlewareOf({
      name: "again",
      aroundTool: async ({ call: made }, next) => {
        const once = await next(made);
        return once.isError ? next(made) : once;
      },
    });
    const done = await runToolLoop({ tools: [tool], middleware: [again], turns: [[call("flaky")], ["ok"]] });
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["second"]);
  });

  test("an aroundTool hook that hedges with two parallel attempts gets the faster one, and their retries do not interfere", async () => {
    const world = createVirtualWorld();
    let starts = 0;
    const tool = defineTool({
      name: "slow",
      description: "Slow.",
      input: z.object({}),
      effect: "pure",
      retry: { attempts: 3, initialMs: 10, jitter: 0, on: ["failed"] },
      run: () => {
        starts += 1;
        return starts <= 3 ? Promise.reject(new Error("not yet")) : `start ${starts}`;
      },
    });
    const hedge = middlewareOf({
      name: "hedge",
      aroundTool: ({ call: made }, next) => Promise.race([next(made), next(made)]),
    });
    const loop = createToolLoop({ tools: [tool], middleware: [hedge], world, turns: [[call("slow")], ["ok"]] });
    const end = loop.start().result;
    await world.advance(1_000);
    expect(listToolAnswers(await end).map(getAnswerText)).toEqual(["start 4"]);
    expect(world.timers).toBe(0);
  });

  test("a run failure inside next is not changed by an aroundTool hook, and an ignored next causes no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", onUnhandled);
    try {
      const tool: DeskTool = {
        spec: adder().spec,
        call: () =>
          Promise.reject(new StatewrightError("missing_secret", { what: "the key is gone", next: "Bring it" })),
      };
      const looking = middlewareOf({
        name: "looking",
        required: true,
        aroundTool: ({ call: made }, next) => next(made),
      });
      const loop = createToolLoop({ tools: [tool], middleware: [looking], turns: [[call("add", { a: 1 })], ["ok"]] });
      const error = await loop.start().result.catch((thrown: unknown) => thrown);
      expect(isStatewrightError(error, "missing_secret")).toBe(true);
      const hasty = middlewareOf({
        name: "hasty",
        aroundTool: async ({ call: made }, next) => {
          next(made);
          return { ...result, callId: made.id };
        },
      });
      const done = await runToolLoop({ tools: [tool], middleware: [hasty], turns: [[call("add", { a: 1 })], ["ok"]] });
      await done.world.waitUntilIdle();
      expect(listToolAnswers(done).map(getAnswerText)).toEqual(["mine"]);
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", onUnhandled);
    }
  });

  test("an aroundTool or afterTool hook that returns nothing or an invalid result keeps the answer of the tool", async () => {
    for (const returned of [undefined, null, "text", { content: "text", isError: false }]) {
      const forgetful = middlewareOf({
        name: "forgetful",
        aroundTool: async ({ call: made }, next) => {
          await next(made);
          return returned as never;
        },
        afterTool: () => (returned === undefined ? undefined : (returned as never)),
      });
      const done = await runToolLoop({
        tools: [adder()],
        middleware: [forgetful],
        turns: [[call("add", { a: 5 })], ["ok"]],
      });
      expect(listToolAnswers(done).map(getAnswerText)).toEqual(["5"]);
      expect(done.world.lines.some(({ message }) => message.includes('"forgetful" failed'))).toBe(true);
    }
  });
});

describe("hook that throws", () => {
  const throwBoom = (): never => {
    throw new Error("boom");
  };
  const hooks = {
    beforeTool: throwBoom,
    "aroundTool before next": throwBoom,
    "aroundTool after next": throwBoom,
    afterTool: throwBoom,
  };

  function throwing(where: keyof typeof hooks, required: boolean, thrown: () => never = throwBoom) {
    return middlewareOf({
      name: "broken",
      required,
      ...(where === "beforeTool" ? { beforeTool: thrown } : {}),
      ...(where === "afterTool" ? { afterTool: thrown } : {}),
      ...(where === "aroundTool before next" ? { aroundTool: async () => thrown() } : {}),
      ...(where === "aroundTool after next"
        ? {
            aroundTool: async ({ call: made }, next) => {
              await next(made);
              return thrown();
            },
          }
        : {}),
    });
  }

  test("a hook that throws is logged, and the tool runs once", async () => {
    for (const where of Object.keys(hooks) as (keyof typeof hooks)[]) {
      const log: string[] = [];
      const done = await runToolLoop({
        tools: [adder(log)],
        middleware: [throwing(where, false)],
        turns: [[call("add", { a: 5 })], ["ok"]],
      });
      expect([where, done.result.status, log, listToolAnswers(done).map(getAnswerText)]).toEqual([
        where,
        "done",
        ["run 5+0"],
        ["5"],
      ]);
      expect(done.world.lines.filter(({ message }) => message.includes('middleware "broken" failed'))).toHaveLength(1);
    }
  });

  test("a hook that throws in required middleware fails the run", async () => {
    for (const where of Object.keys(hooks) as (keyof typeof hooks)[]) {
      const loop = createToolLoop({
        tools: [adder()],
        middleware: [throwing(where, true)],
        turns: [[call("add", { a: 5 })], ["ok"]],
      });
      const error = await loop.start().result.catch((thrown: unknown) => thrown);
      expect([where, isStatewrightError(error, "node_failed")]).toEqual([where, true]);
      expect(String(error)).toContain('required middleware "broken"');
    }
  });

  test("a hook that throws a tool error answers the tool call with that error", async () => {
    for (const where of Object.keys(hooks) as (keyof typeof hooks)[]) {
      const refusal = (): never => {
        throw new ToolError("denied", "closed today");
      };
      const done = await runToolLoop({
        tools: [adder()],
        middleware: [throwing(where, true, refusal)],
        turns: [[call("add", { a: 5 })], ["ok"]],
      });
      expect([where, listToolAnswers(done).map((answer) => [getAnswerText(answer), answer.isError])]).toEqual([
        where,
        [["closed today", true]],
      ]);
      expect(listResults(done)[0]?.error?.kind).toBe("denied");
    }
  });
});

describe("update filters", () => {
  const chatty = defineTool({
    name: "chatty",
    description: "Chatty.",
    input: z.object({}),
    run: (_args, { update }) => {
      update?.({ content: "public" });
      update?.({ content: "SENTINEL" });
      update?.({ content: "last", details: { n: 1 } });
      return "done";
    },
  });

  test("an update filter changes a partial result or withholds it", async () => {
    const filter = middlewareOf({
      name: "filter",
      onToolUpdate: ({ partial }) =>
        partial.content === "SENTINEL" ? null : { ...partial, content: `[${partial.content as string}]` },
    });
    const silent = middlewareOf({ name: "silent" });
    const done = await runToolLoop({
      tools: [chatty],
      middleware: [silent, filter, silent],
      turns: [[call("chatty")], ["ok"]],
    });
    expect(listEvents(done, "tool.update").map(({ partial }) => partial)).toEqual([
      { content: "[public]" },
      { content: "[last]", details: { n: 1 } },
    ]);
  });

  test("a partial result whose filter throws is withheld, and the tool continues", async () => {
    const filter = middlewareOf({
      name: "filter",
      onToolUpdate: ({ partial }) => {
        if (partial.content === "SENTINEL") throw new Error("cannot redact");
        return partial;
      },
    });
    const done = await runToolLoop({ tools: [chatty], middleware: [filter], turns: [[call("chatty")], ["ok"]] });
    expect(listEvents(done, "tool.update").map(({ partial }) => partial.content)).toEqual(["public", "last"]);
    expect(listToolAnswers(done).map(getAnswerText)).toEqual(["done"]);
    expect(JSON.stringify(done.events)).not.toContain("SENTINEL");
  });
});

describe("safety policies", () => {
  test("a tool without safety metadata runs, middleware sees unclassified, and a policy may deny it [S1.93]", async () => {
    const seen: string[] = [];
    const watching = middlewareOf({
      name: "watching",
      beforeTool: ({ tool }) => void seen.push(tool.safety.access) as undefined,
    });
    const refusing = middlewareOf({
      name: "refusing",
      beforeTool: ({ tool }) =>
        tool.safety.access === "unclassified" ? decide.deny(`${tool.name} is not classified`) : undefined,
    });
    const free = await runToolLoop({
      tools: [adder()],
      middleware: [watching],
      turns: [[call("add", { a: 1 })], ["ok"]],
    });
    expect([seen, listToolAnswers(free)[0]?.isError]).toEqual([["unclassified"], false]);
    const log: string[] = [];
    const refused = await runToolLoop({
      tools: [adder(log)],
      middleware: [refusing],
      turns: [[call("add", { a: 1 })], ["ok"]],
    });
    expect(log).toEqual([]);
    expect(listResults(refused)[0]?.error).toEqual({
      kind: "denied",
      disposition: "repair",
      message: "add is not classified",
    });
    expect(refused.result.status).toBe("done");
  });

  const declared: ToolSafety = {
    access: "write",
    network: ["pay.example"],
    filesystem: "read",
    process: true,
    spend: true,
    confirm: "policy",
    roots: ["/tree"],
    redact: { args: ["card.number"] },
  };

  /** Tool safety declaration as passed to a beforeTool hook. */
  async function seenByMiddleware(): Promise<Partial<ToolSafety> & { readonly effect?: string }> {
    let seen = {};
    const tool = defineTool({
      name: "pay",
      description: "Pay.",
      input: z.object({}),
      effect: "idempotent",
      safety: declared,
      run: () => "x",
    });
    const watching = middlewareOf({
      name: "watching",
      beforeTool: ({ tool: { safety, effect } }) => {
        seen = { ...safety, effect };
        return undefined;
      },
    });
    await runToolLoop({ tools: [tool], middleware: [watching], turns: [[call("pay")], ["ok"]] });
    return seen;
  }

  test("the effect and safety access metadata of a tool is declared, typed and visible to middleware [S1.22, S1.78, S1.79, S1.80, S1.81]", async () => {
    expect(await seenByMiddleware()).toEqual({ ...declared, effect: "idempotent" });
  });

  test("the process, spend, confirm, roots and redact metadata of a tool is visible to middleware [S1.82, S1.83, S1.84, S1.85, S1.86]", async () => {
    const { process: starts, spend, confirm, roots, redact } = await seenByMiddleware();
    expect({ starts, spend, confirm, roots, redact }).toEqual({
      starts: true,
      spend: true,
      confirm: "policy",
      roots: ["/tree"],
      redact: { args: ["card.number"] },
    });
  });

  test("policies use tool metadata to deny, confine, deny by list, pause and resume [S1.87]", async () => {
    const log: string[] = [];
    const safety = (name: string, declared: ToolSafety): DeskTool =>
      defineTool({
        name,
        description: name,
        input: z.object({ path: z.string().default("/") }),
        safety: declared,
        run: ({ path }) => void log.push(`${name} ${path}`),
      });
    const tools = [
      safety("wipe", { access: "destructive" }),
      safety("save", { access: "write", filesystem: "write", roots: ["/tree"] }),
      safety("post", { access: "write", network: ["evil.example"] }),
      safety("buy", { access: "write", spend: true, confirm: "always" }),
    ];
    const policy = middlewareOf({
      name: "policy",
      beforeTool: ({ call: made, tool }) => {
        const { access, network, roots, confirm } = tool.safety;
        if (access === "destructive") return decide.deny("nothing is destroyed here");
        if (Array.isArray(network) && !network.every((host) => host === "good.example"))
          return decide.deny("host not listed");
        if (confirm === "always") return decide.interrupt(made, "it spends");
        const { path } = made.args as { readonly path: string };
        return roots?.[0] === undefined || path.startsWith(roots[0])
          ? undefined
          : decide.modify({ path: `${roots[0]}${path}` });
      },
    });
    const loop = createToolLoop({
      tools,
      middleware: [policy],
      turns: [[call("wipe"), call("save", { path: "/etc" }), call("post"), call("buy")], ["ok"]],
    });
    expect((await loop.start().result).status).toBe("waiting");
    expect(log).toEqual(["save /tree/etc"]);
    const end = await loop.again({ approve: true }).result;
    expect(log).toEqual(["save /tree/etc", "buy /"]);
    expect(listToolAnswers(end).map((answer) => [answer.name, answer.isError])).toEqual([
      ["wipe", true],
      ["save", false],
      ["post", true],
      ["buy", false],
    ]);
  });

  test("deny with terminate marks the result of the tool call with terminate", async () => {
    const stop = middlewareOf({ name: "stop", beforeTool: () => decide.deny("enough", { terminate: true }) });
    const done = await runToolLoop({ tools: [adder()], middleware: [stop], turns: [[call("add", { a: 1 })], ["ok"]] });
    expect(listResults(done)[0]).toMatchObject({ isError: true, terminate: true });
  });
});
