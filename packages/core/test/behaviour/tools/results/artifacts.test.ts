/** Large results: stored complete, shown bounded and redacted, read by page, and reported when storing fails. */
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { computeArtifactKey, getArtifactHandle } from "../../../../src/adapter.ts";
import {
  type ArtifactRef,
  defineMiddleware,
  defineTool,
  type Json,
  type ModelRequest,
  memoryStore,
  readArtifact,
  type Store,
  type ToolMessage,
  type ToolOutput,
  type ToolSafety,
} from "../../../../src/index.ts";
import { exportThread } from "../../../../src/inspect.ts";
import { type ArtifactStore, memoryArtifacts } from "../../../../src/store.ts";
import {
  type ChatResult,
  call,
  createToolLoop,
  type DeskTool,
  type Loop,
  type LoopOptions,
  listEvents,
  listResults,
  listToolAnswers,
  runToolLoop,
} from "../../../support/tool-loop.ts";

const planted = "SECRET-4711";
const replaceSecret = (text: string): string => text.replaceAll(planted, "[gone]");
const encoder = new TextEncoder();

/** Creates a tool that returns the given result. */
function createGivingTool(
  output: unknown,
  more: {
    readonly safety?: Partial<ToolSafety>;
    readonly limits?: { resultBytes?: number; artifactBytes?: number };
  } = {},
): DeskTool {
  return defineTool({
    name: "dump",
    description: "Gives something.",
    input: z.object({}),
    effect: "pure",
    ...more,
    run: () => output as ToolOutput,
  });
}

/** Returns the text of a message that the model reads. */
function getAnswerText(message: ToolMessage | undefined): string {
  return (message?.content ?? [])
    .map((block) => {
      if (block.type === "text") return block.text;
      if (block.type === "artifact") return block.preview;
      return block.type === "json" ? JSON.stringify(block.value) : "data" in block ? block.data : "";
    })
    .join("");
}

function seenBytes(message: ToolMessage | undefined): number {
  return encoder.encode(getAnswerText(message)).length;
}

async function runOneCall(
  output: unknown,
  { tool = createGivingTool(output), ...options }: Partial<LoopOptions> & { readonly tool?: DeskTool } = {},
): Promise<{
  readonly loop: Loop & { readonly result: ChatResult };
  readonly answer: ToolMessage;
  readonly artifacts: readonly ArtifactRef[];
  readonly store: Store;
}> {
  const store = memoryStore();
  const loop = await runToolLoop({ store, tools: [tool], turns: [[call("dump")], ["ok"]], ...options });
  const [answer] = listToolAnswers(loop);
  return { loop, answer: answer as ToolMessage, artifacts: listResults(loop)[0]?.artifacts ?? [], store };
}

async function getBody(store: Store | ArtifactStore, key: string): Promise<string> {
  const artifacts = "artifacts" in store ? store.artifacts : store;
  return new TextDecoder().decode(await artifacts.read("t", key));
}

const large = `head ${planted} ${"line of text\n".repeat(80_000)} tail ${planted}`;

test("1 MB of tool output is stored complete, the model sees a bounded redacted preview and events carry the artifact key [S1.73, S1.74, S1.75, S1.76, S1.77]", async () => {
  const tool = createGivingTool(large, { safety: { redact: { result: replaceSecret } } });
  const { loop, answer, artifacts, store } = await runOneCall(large, { tool });
  const [ref] = artifacts;
  const whole = replaceSecret(large);
  expect(artifacts).toHaveLength(1);
  expect(ref).toMatchObject({
    key: await computeArtifactKey(encoder.encode(whole)),
    bytes: encoder.encode(whole).length,
    name: "dump.txt",
    mimeType: "text/plain",
  });
  expect(await getBody(store, ref?.key ?? "")).toBe(whole);
  expect(answer.content).toMatchObject([{ type: "artifact", ref: { handle: getArtifactHandle(ref?.key ?? "") } }]);
  expect(seenBytes(answer)).toBeLessThanOrEqual(8_192);
  expect(getAnswerText(answer)).toMatch(/^head \[gone\]/);
  expect(getAnswerText(answer)).toMatch(/tail \[gone\]$/);
  const [, cut, all] =
    /… (\d+) of (\d+) bytes are cut here\. The full text is the artifact ([0-9a-f]{16})/.exec(getAnswerText(answer)) ??
    [];
  expect(Number(all)).toBe(ref?.bytes);
  expect(Number(cut)).toBeGreaterThan(1_000_000);
  for (const wire of loop.wires)
    expect([wire.includes(planted), wire.includes(ref?.key ?? "")]).toEqual([false, false]);
  expect(loop.wires.at(-1)?.length).toBeLessThan(12_000);
  expect(loop.saved()).not.toContain(planted);
});

test("structured output and artifact references are equal after a save and a resume [S1.10, S1.69]", async () => {
  const store = memoryStore();
  const value = { rows: [1, 2.5, null], text: "ä\u2028" };
  const report = defineTool({
    name: "report",
    description: "Reports.",
    input: z.object({}),
    effect: "once",
    run: () => ({
      content: "done",
      value,
      artifacts: [{ name: "report.csv", mimeType: "text/csv", body: "a,b\n1,2\n" }],
    }),
  });
  let isDown = true;
  const loop = createToolLoop({
    store,
    tools: [report],
    turns: [
      [call("report")],
      () => {
        if (isDown) throw new Error("the provider is down");
        return ["ok"];
      },
    ],
  });
  await expect(loop.start().result).rejects.toThrow("the provider is down");
  const [before] = listResults(loop);
  const rows = await store.artifacts.list("t");
  isDown = false;
  const resumed = await loop.again().result;
  const [row] = (await store.effects("t", "main")).filter(({ kind }) => kind === "tool");
  expect(JSON.parse(row?.outcome ?? "")).toEqual(JSON.parse(JSON.stringify(before)));
  expect(before).toMatchObject({ value, artifacts: [{ name: "report.csv", bytes: 8 }] });
  expect(await store.artifacts.list("t")).toEqual(rows);
  expect(rows).toMatchObject([{ key: before?.artifacts?.[0]?.key, tool: "report", call: "id_report", branch: "main" }]);
  expect(getAnswerText(listToolAnswers(resumed)[0])).toBe(
    `done["report.csv" (text/csv, 8 bytes) is the artifact ${getArtifactHandle(rows[0]?.key ?? "")}.]`,
  );
});

describe("ten stages of a tool call", () => {
  const listMarks = async (store: Store | "none"): Promise<readonly string[]> => {
    const log: string[] = [];
    const states: Readonly<Record<string, string>> = {
      resolved: "1 name exists",
      validated: "2 arguments match",
      admitted: "3 limits",
      formatted: "8 format",
      persisted: "9 persist",
    };
    const tool = defineTool({
      name: "dump",
      description: "Gives something.",
      input: z.object({}),
      effect: "pure",
      run: () => {
        log.push("6 execute");
        return "x".repeat(20_000);
      },
    });
    const watch = defineMiddleware({
      name: "watch",
      beforeTool: () => {
        log.push("5 before_tool");
        return undefined;
      },
      afterTool: () => {
        log.push("7 after_tool");
        return undefined;
      },
    });
    const loop = createToolLoop({
      store,
      tools: [tool],
      middleware: [watch],
      turns: [[call("dump")], ["ok"]],
      inspect: (event) => {
        const snapshot = (event as { readonly snapshot?: { readonly value?: unknown } }).snapshot;
        const mark = event.type === "@xstate.snapshot" ? states[String(snapshot?.value)] : undefined;
        if (mark !== undefined && !log.includes(mark)) log.push(mark);
      },
    });
    const handle = loop.start();
    handle.on(({ type }) => {
      if (type === "tool.started") log.push("4 tool.started");
      if (type === "tool.completed") log.push("10 tool.completed");
    });
    await handle.result;
    return log;
  };

  const ten = [
    "1 name exists",
    "2 arguments match",
    "3 limits",
    "4 tool.started",
    "5 before_tool",
    "6 execute",
    "7 after_tool",
    "8 format",
    "9 persist",
    "10 tool.completed",
  ];

  test("a tool call is checked by name, arguments and limits, in this order, before it starts [S1.48, S1.49, S1.50, S1.51, D4]", async () => {
    expect((await listMarks(memoryStore())).slice(0, 4)).toEqual(ten.slice(0, 4));
  });

  test("hooks wrap the tool execution, and the result is formatted after them [S1.52, S1.53, S1.54, S1.55, D4]", async () => {
    expect((await listMarks(memoryStore())).slice(4, 8)).toEqual(ten.slice(4, 8));
  });

  test("a large result is persisted before the end event of its tool call, and is truncated in a run without a store [S1.56, S1.57, D4]", async () => {
    const store = memoryStore();
    expect(await listMarks(store)).toEqual(ten);
    expect(await store.artifacts.list("t")).toHaveLength(1);
    expect(await listMarks("none")).toEqual(ten.filter((mark) => mark !== "9 persist"));
    const { answer, artifacts } = await runOneCall("x".repeat(20_000), { store: "none" });
    expect(artifacts).toEqual([]);
    expect(answer.content).toMatchObject([{ type: "text" }]);
    expect(seenBytes(answer)).toBeLessThanOrEqual(8_192);
    expect(getAnswerText(answer)).toMatch(/^x+\n\[… 11\d{3} of 20000 bytes are cut here\.\]\nx+$/);
  });
});

test("result details appear in the event and never in a model request, also after a reload from the store [T21]", async () => {
  const { loop } = await runOneCall({ content: "short", details: { note: "DETAIL-1" }, value: { note: "VALUE-1" } });
  for (const wire of loop.wires) expect([wire.includes("DETAIL-1"), wire.includes("VALUE-1")]).toEqual([false, false]);
  expect(JSON.stringify(listResults(loop)[0])).toContain("DETAIL-1");
});

describe("tool result as the model sees it", () => {
  test("no tool result in a model request exceeds the limit, whatever its content", async () => {
    const image = { type: "image", mimeType: "image/png", data: "A".repeat(30_000) };
    const cases: readonly unknown[] = [
      "x".repeat(51_200),
      "😀".repeat(30_000),
      { content: Array.from({ length: 40 }, (_, nth) => ({ type: "text", text: `${nth} ${"y".repeat(7_000)}` })) },
      { content: Array.from({ length: 30_000 }, () => ({ type: "text", text: "é" })) },
      { content: [image, image, { type: "text", text: "last words" }] },
      { content: [{ ...image, data: "A".repeat(200_000) }] },
      { content: [{ type: "json", value: { deep: "z".repeat(60_000) } }] },
      { rows: Array.from({ length: 5_000 }, (_, id) => ({ id, name: `name ${id}` })) },
      { content: "e".repeat(90_000), isError: true },
      {
        content: "many",
        artifacts: Array.from({ length: 600 }, (_, nth) => ({
          name: `part ${nth}`,
          mimeType: "text/plain",
          body: `${nth}`,
        })),
      },
    ];
    for (const output of cases) {
      for (const store of [memoryStore(), "none"] as const) {
        const { answer, artifacts } = await runOneCall(output, { store });
        expect(seenBytes(answer)).toBeLessThanOrEqual(51_200);
        expect(artifacts.length > 0 || store === "none" || seenBytes(answer) > 40_000).toBe(true);
      }
    }
  });

  test("a result below the limit is inlined and not stored as an artifact", async () => {
    for (const output of ["x".repeat(8_192), "é".repeat(4_096), { rows: [1, 2, 3] }, { content: [] }]) {
      const { artifacts, answer, store } = await runOneCall(output);
      expect([artifacts, await store.artifacts.list("t")]).toEqual([[], []]);
      expect(getAnswerText(answer)).not.toContain("cut");
    }
    expect((await runOneCall("x".repeat(8_193))).artifacts).toHaveLength(1);
  });

  test("an image is never truncated: the model sees the complete image or a note that names its artifact", async () => {
    const data = btoa("\u0000\u00ff".repeat(30_000));
    const { answer, artifacts, store } = await runOneCall({
      content: [{ type: "image", mimeType: "image/png", data }],
    });
    expect(artifacts).toMatchObject([{ mimeType: "image/png", bytes: 60_000 }]);
    expect(getAnswerText(answer)).toBe(
      `[The image (image/png, ${data.length} bytes as base64) is too large to be shown. Its data is the artifact ${artifacts[0]?.handle}.]`,
    );
    expect((await store.artifacts.read("t", artifacts[0]?.key ?? ""))?.slice(0, 4)).toEqual(
      Uint8Array.from([0, 255, 0, 255]),
    );
    const wide = createGivingTool(
      { content: [{ type: "image", mimeType: "image/png", data }] },
      { limits: { resultBytes: 100_000 } },
    );
    expect((await runOneCall(undefined, { tool: wide })).answer.content).toEqual([
      { type: "image", mimeType: "image/png", data },
    ]);
  });

  test("a model without image support reads a text line in place of an image, and the transcript keeps the image [S3.12]", async () => {
    const image = { type: "image", mimeType: "image/png", data: "iVBORw0KGgo=" } as const;
    const content = [{ type: "text", text: "before" } as const, image, { type: "text", text: "after" } as const];
    const note = { type: "text", text: "[An image (image/png) that this model cannot see.]" };
    const { loop, answer } = await runOneCall({ content }, { images: false });
    expect(answer.content).toEqual(content);
    expect(loop.requests.at(-1)?.messages.at(-1)?.content).toEqual([content[0], note, content[2]]);
    const seeing = await runOneCall({ content });
    expect(seeing.loop.requests.at(-1)?.messages.at(-1)?.content).toEqual(content);
  });

  test("the limits of a tool override the limits of its tool node", async () => {
    const text = "x".repeat(3_000);
    expect((await runOneCall(text, { limits: { artifactBytes: 1_000 } })).artifacts).toHaveLength(1);
    const roomy = createGivingTool(text, { limits: { artifactBytes: 4_000 } });
    expect((await runOneCall(text, { tool: roomy, limits: { artifactBytes: 1_000 } })).artifacts).toHaveLength(0);
    expect(seenBytes((await runOneCall(text, { limits: { resultBytes: 600 } })).answer)).toBeLessThanOrEqual(600);
  });

  test("invalid limits and redaction options are refused at definition", () => {
    for (const limits of [{ resultBytes: 100 }, { artifactBytes: 1.5 }, { artifactBytes: Number.NaN }, { other: 1 }])
      expect(() => createGivingTool("x", { limits })).toThrow("limits");
    expect(() => createToolLoop({ tools: [createGivingTool("x")], turns: [], limits: { resultBytes: -1 } })).toThrow(
      "limits",
    );
    expect(() => createGivingTool("x", { safety: { redact: { result: 7 as never } } })).toThrow(
      "redaction of the tool",
    );
    expect(() => createGivingTool("x", { safety: { redact: { args: "a" as never } } })).toThrow("redaction");
    expect(() => createToolLoop({ tools: [createGivingTool("x")], turns: [], artifacts: {} as never })).toThrow(
      "artifacts",
    );
    expect(() => readArtifact({ pageBytes: 0 })).toThrow("pageBytes");
  });
});

describe("artifacts returned by a tool", () => {
  test("bytes and text of an artifact are stored unchanged, and the tool may reuse its buffer afterwards", async () => {
    const bytes = Uint8Array.from([0, 200, 7]);
    const tool = defineTool({
      name: "dump",
      description: "Gives something.",
      input: z.object({}),
      effect: "pure",
      run: () => ({
        content: "two files",
        artifacts: [
          { name: "a.bin", mimeType: "application/octet-stream", body: bytes },
          { name: "b.txt", mimeType: "text/plain", body: "text" },
        ],
      }),
    });
    const later = defineMiddleware({ name: "later", afterTool: () => void bytes.fill(9) });
    const { artifacts, store, answer } = await runOneCall(undefined, { tool, middleware: [later] });
    expect([...((await store.artifacts.read("t", artifacts[0]?.key ?? "")) ?? [])]).toEqual([0, 200, 7]);
    expect(await getBody(store, artifacts[1]?.key ?? "")).toBe("text");
    expect(answer.content).toHaveLength(3);
    expect((await store.artifacts.list("t")).map(({ name, text }) => [name, text])).toEqual([
      ["a.bin", false],
      ["b.txt", true],
    ]);
  });

  test("an invalid artifact in a tool result is answered with an invalid_output error", async () => {
    for (const artifacts of [
      7,
      [7],
      [{ name: "", mimeType: "a/b", body: "" }],
      [{ name: "a", mimeType: "a/b", body: {} }],
    ]) {
      const { loop, answer } = await runOneCall({ content: "x", artifacts });
      expect(listResults(loop)[0]?.error?.kind).toBe("invalid_output");
      expect([answer.isError, getAnswerText(answer).includes("artifact")]).toEqual([true, true]);
    }
  });

  test("afterTool hooks see the artifacts to be stored and may remove them", async () => {
    const hook = defineMiddleware({
      name: "none",
      afterTool: ({ result }) => ({ ...result, drafts: (result.drafts ?? []).filter(({ name }) => name !== "b.txt") }),
    });
    const draft = (name: string) => ({ name, mimeType: "text/plain", body: name });
    const { artifacts } = await runOneCall(
      { content: "x", artifacts: [draft("a.txt"), draft("b.txt")] },
      { middleware: [hook] },
    );
    expect(artifacts.map(({ name }) => name)).toEqual(["a.txt"]);
  });

  test("two tool calls with the same artifact body share one artifact key", async () => {
    const store = memoryStore();
    const loop = await runToolLoop({
      store,
      tools: [createGivingTool("z".repeat(9_000))],
      turns: [[call("dump", {}, "c1"), call("dump", {}, "c2")], ["ok"]],
    });
    const keys = listResults(loop).map(({ artifacts }) => artifacts?.[0]?.key);
    expect(new Set(keys).size).toBe(1);
    expect((await store.artifacts.list("t")).map(({ call: id }) => id).sort()).toEqual(["c1", "c2"]);
  });
});

describe("redaction", () => {
  const redacting = { safety: { redact: { result: replaceSecret } } };

  test("results, errors, updates and progress of a redacting tool never show the text that its policy redacts [S1.86, T26]", async () => {
    const outputs: readonly unknown[] = [
      `a ${planted}`,
      { [planted]: [planted, { deep: `x${planted}y` }], quoted: `"${planted}"` },
      { content: `no ${planted}`, isError: true },
      { content: "x", value: { note: planted }, details: [planted] },
      {
        content: [{ type: "json", value: [planted] }],
        artifacts: [{ name: planted, mimeType: "text/plain", body: planted }],
      },
    ];
    for (const output of outputs) {
      const tool = defineTool({
        name: "dump",
        description: "Gives something.",
        input: z.object({}),
        effect: "once",
        ...redacting,
        run: (_, { progress, update }) => {
          progress(`at ${planted}`);
          update?.({ content: `so far ${planted}`, details: planted });
          return output as ToolOutput;
        },
      });
      const { loop, store } = await runOneCall(undefined, { tool });
      expect(listEvents(loop, "tool.update", "tool.progress")).toHaveLength(2);
      for (const { key } of await store.artifacts.list("t")) expect(await getBody(store, key)).toBe("[gone]");
      for (const text of [...loop.wires, JSON.stringify(loop.events), loop.saved(), await exportThread(store, "t")])
        expect(text).not.toContain(planted);
      expect(JSON.stringify(loop.events)).toContain("[gone]");
    }
    const throwing = defineTool({
      name: "dump",
      description: "Fails.",
      input: z.object({}),
      ...redacting,
      run: () => {
        throw new Error(`cannot reach ${planted}`);
      },
    });
    const { loop } = await runOneCall(undefined, { tool: throwing });
    for (const text of [...loop.wires, JSON.stringify(loop.events), loop.saved()]) expect(text).not.toContain(planted);
  });

  test("data is redacted in its serialized form: a number is redacted too, and becomes text when it is no longer valid data", async () => {
    const digits = (text: string): string => text.replaceAll("4711", "****");
    const { answer } = await runOneCall(undefined, {
      tool: createGivingTool({ pin: 4711 }, { safety: { redact: { result: digits } } }),
    });
    expect(answer.content).toEqual([{ type: "text", text: '{"pin":****}' }]);
  });

  test("arguments listed in the redaction policy are masked in events", async () => {
    const pay = defineTool({
      name: "dump",
      description: "Pays.",
      input: z.object({ card: z.object({ number: z.string(), name: z.string() }), codes: z.array(z.string()) }),
      safety: { redact: { args: ["card.number", "codes.*", "nothing.here"] } },
      run: ({ card }) => `paid with ${card.number.length} digits`,
    });
    const args = { card: { number: "4111", name: "Ada" }, codes: ["7", "8"] };
    const { loop, answer } = await runOneCall(undefined, { tool: pay, turns: [[call("dump", args)], ["ok"]] });
    expect(listEvents(loop, "tool.started").map(({ args: shown }) => shown)).toEqual([
      { card: { number: "[redacted]", name: "Ada" }, codes: ["[redacted]", "[redacted]"] },
    ]);
    expect(getAnswerText(answer)).toBe("paid with 4 digits");
  });

  test("a redaction that throws withholds the result, and the turn continues", async () => {
    const redact = (text: string): string => {
      if (text.includes(planted)) throw new Error("no idea");
      return text;
    };
    const tool = createGivingTool(`a ${planted}`, { safety: { redact: { result: redact } } });
    const { loop, answer } = await runOneCall(undefined, { tool });
    expect(loop.result.status).toBe("done");
    expect(getAnswerText(answer)).toBe('The tool "dump" ran, but its result is withheld: it could not be redacted.');
    for (const text of [...loop.wires, JSON.stringify(loop.events)]) expect(text).not.toContain(planted);
    expect(loop.world.lines.some(({ level, message }) => level === "error" && message.includes("withheld"))).toBe(true);
  });
});

describe("tool read_artifact", () => {
  /** Loop in which the model reads the artifact page by page, as the note in the result says. */
  async function reads(output: ToolOutput, more: Parameters<typeof createGivingTool>[1] = {}, pageBytes = 64) {
    const store = memoryStore();
    const pages: string[] = [];
    const getNext = ({ messages }: ModelRequest): readonly [string, number | undefined] => {
      const texts = messages.filter((message): message is ToolMessage => message.role === "tool").map(getAnswerText);
      const last = texts.at(-1) ?? "";
      if (texts.length > 1) pages.push(last.slice(0, last.lastIndexOf("\n[Bytes")));
      const handle = /artifact ([0-9a-f]{16})/.exec(texts[0] ?? "")?.[1] ?? "none";
      const next = texts.length === 1 ? 0 : Number(/Go on with offset (\d+)/.exec(last)?.[1]);
      return [handle, Number.isNaN(next) ? undefined : next];
    };
    const loop = await runToolLoop({
      store,
      tools: [createGivingTool(output, more), readArtifact({ pageBytes })],
      turns: [
        [call("dump")],
        ...Array.from({ length: 60 }, (_, nth) => (request: ModelRequest) => {
          const [artifact, offset] = getNext(request);
          return offset === undefined ? ["done"] : [call("read_artifact", { artifact, offset } as Json, `r${nth}`)];
        }),
      ],
    });
    return { loop, store, pages };
  }

  test("read_artifact redacts every page like the preview, also when the stored body is unredacted and a secret spans two pages [S1.90]", async () => {
    for (const shift of [0, 1, 30, 58, 60, 63]) {
      const body = `${"x".repeat(shift)}${planted}${"€".repeat(40)}${planted}${"y".repeat(200)}${planted}`;
      const draft = { name: "log.txt", mimeType: "text/plain", body, redact: false };
      const { loop, store, pages } = await reads(
        { content: "a log", artifacts: [draft] },
        { safety: { redact: { result: replaceSecret } } },
      );
      const [row] = await store.artifacts.list("t");
      expect(await getBody(store, row?.key ?? "")).toBe(body);
      expect(pages.join("")).toBe(replaceSecret(body));
      expect(pages.length).toBeGreaterThan(4);
      for (const page of pages) expect(encoder.encode(page).length).toBeLessThanOrEqual(64);
      for (const wire of loop.wires) expect(wire).not.toContain(planted);
      expect(JSON.stringify(loop.events)).not.toContain(planted);
      expect(loop.result.status).toBe("done");
    }
  });

  test("the model sees an artifact handle that only read_artifact accepts; the key goes to the application and to events [D30]", async () => {
    const { loop, store, pages } = await reads({ content: "x".repeat(9_000) }, {}, 5_000);
    const [dumped] = listResults(loop);
    const { key = "", handle = "" } = dumped?.artifacts?.[0] ?? {};
    expect([key.length, handle]).toEqual([64, getArtifactHandle(key)]);
    for (const wire of loop.wires) expect(wire).not.toContain(key);
    expect(JSON.stringify(loop.result.state)).not.toContain(key);
    expect(loop.wires.at(-1)).toContain(handle);
    expect(pages.join("")).toHaveLength(9_000);
    expect((await store.artifacts.read("t", key))?.length).toBe(9_000);
    expect(await store.artifacts.read("t", handle)).toBeUndefined();
    const otherLoop = await runToolLoop({
      store: memoryStore(),
      tools: [readArtifact()],
      turns: [[call("read_artifact", { artifact: handle })], ["ok"]],
    });
    expect(listResults(otherLoop)[0]?.error?.kind).toBe("not_found");
  });

  test("read_artifact reads a text body in whole code points from any offset and stores no page as another artifact", async () => {
    const body = "aé€😀".repeat(3_000);
    const { pages, store } = await reads({ content: body }, {}, 1_000);
    expect(pages.join("")).toBe(body);
    expect(await store.artifacts.list("t")).toHaveLength(1);
  });

  test("read_artifact answers a missing artifact, or an artifact of another thread, with a not-found error that names it [T29]", async () => {
    const store = memoryStore();
    const otherLoop = await runToolLoop({
      store,
      tools: [createGivingTool("q".repeat(9_000))],
      turns: [[call("dump")], ["ok"]],
    });
    const key = listResults(otherLoop)[0]?.artifacts?.[0]?.key ?? "";
    const other = memoryStore();
    const image = await store.exportThread("t");
    await other.importThread({ ...image, id: "other", runs: image.runs.map((run) => ({ ...run, thread: "other" })) });
    expect(await other.artifacts.list("other", { key })).toHaveLength(1);
    for (const artifact of [
      key,
      getArtifactHandle(key),
      `other/${getArtifactHandle(key)}`,
      "0123456789abcdef",
      "../x",
      "",
    ]) {
      const loop = await runToolLoop({
        store: other,
        tools: [readArtifact()],
        turns: [[call("read_artifact", { artifact })], ["ok"]],
      });
      const [result] = listResults(loop);
      expect([result?.error?.kind, getAnswerText(listToolAnswers(loop)[0])]).toEqual([
        "not_found",
        `There is no artifact "${artifact}" in this thread.`,
      ]);
      await other.delete("t");
    }
  });

  test("read_artifact names an artifact whose body was removed from its store, with its former name and size [T29]", async () => {
    const artifacts = memoryArtifacts();
    const evicting: ArtifactStore = { ...artifacts, read: async () => undefined };
    const loop = await runToolLoop({
      artifacts: evicting,
      tools: [createGivingTool("q".repeat(9_000)), readArtifact()],
      turns: [
        [call("dump")],
        ({ messages }) => {
          const handle = /artifact ([0-9a-f]{16})/.exec(getAnswerText(messages.at(-1) as ToolMessage))?.[1] ?? "";
          return [call("read_artifact", { artifact: handle })];
        },
        ["ok"],
      ],
    });
    const [row] = await artifacts.list("t");
    expect(getAnswerText(listToolAnswers(loop)[1])).toBe(
      `The artifact "${getArtifactHandle(row?.key ?? "")}" ("dump.txt", 9000 bytes) is no longer stored.`,
    );
  });

  test("read_artifact withholds an artifact when no tool can redact it, and refuses an artifact that is not text", async () => {
    const store = memoryStore();
    const draft = { name: "log.txt", mimeType: "text/plain", body: planted, redact: false };
    const picture = { name: "a.png", mimeType: "image/png", body: Uint8Array.from([1, 2, 255]) };
    const first = await runToolLoop({
      store,
      tools: [
        createGivingTool(
          { content: "x", artifacts: [draft, picture] },
          { safety: { redact: { result: replaceSecret } } },
        ),
      ],
      turns: [[call("dump")], ["ok"]],
    });
    const [log, image] = listResults(first)[0]?.artifacts ?? [];
    const later = await runToolLoop({
      store,
      tools: [readArtifact()],
      turns: [
        [],
        ["again"],
        [
          call("read_artifact", { artifact: log?.handle ?? "" }, "a"),
          call("read_artifact", { artifact: image?.handle ?? "" }, "b"),
        ],
        ["ok"],
      ],
    });
    const [denied, binary] = listResults(later);
    expect(denied?.error).toMatchObject({ kind: "denied" });
    expect(binary?.error?.message).toBe(
      `The artifact "${image?.handle}" (image/png, 3 bytes) is not text and cannot be read here.`,
    );
    for (const wire of later.wires) expect(wire).not.toContain(planted);
  });

  test("read_artifact answers invalid arguments with an error and reads nothing", async () => {
    for (const args of [
      {},
      { artifact: 7 },
      { artifact: "a", offset: -1 },
      { artifact: "a", limit: 99_999 },
      { artifact: "a", more: 1 },
    ]) {
      const loop = await runToolLoop({
        tools: [readArtifact()],
        turns: [[call("read_artifact", args as Json)], ["ok"]],
      });
      expect(listResults(loop)[0]?.error?.kind).toBe("invalid_args");
    }
  });
});

describe("artifact storage", () => {
  const text = `begin ${"m".repeat(20_000)} end`;

  test("a failing artifact store is logged and reported, the model sees truncated text and the turn continues [T28, D5]", async () => {
    const failures: readonly (() => Promise<void>)[] = [
      () => Promise.reject(new Error("bucket is full")),
      () => {
        throw new Error("bucket is full");
      },
    ];
    for (const put of failures) {
      const broken: ArtifactStore = { ...memoryArtifacts(), put };
      const { loop, answer, artifacts, store } = await runOneCall(text, { artifacts: broken });
      expect(loop.result.status).toBe("done");
      expect(artifacts).toEqual([]);
      expect(answer.content).toMatchObject([{ type: "text" }]);
      expect(getAnswerText(answer)).toMatch(/^begin m+\n\[… \d+ of 20010 bytes are cut here\.\]\nm+ end$/);
      expect(await store.artifacts.list("t")).toEqual([]);
      expect(listEvents(loop, "tool.artifact_lost")).toMatchObject([
        {
          tool: "dump",
          name: "dump.txt",
          key: await computeArtifactKey(encoder.encode(text)),
          error: "bucket is full",
        },
      ]);
      expect(
        loop.world.lines.some(({ level, message }) => level === "warn" && message.includes("could not be stored")),
      ).toBe(true);
    }
  });

  test("an artifact in the store of the run is committed with the outcome of its tool call and fails with it [T28, D5]", async () => {
    const inner = memoryStore();
    const commits: { readonly effects: readonly string[]; readonly artifacts: number }[] = [];
    let isFull = true;
    const store: Store = {
      ...inner,
      commit: (commit, onCommitted) => {
        const artifacts = commit.artifacts?.length ?? 0;
        if (artifacts > 0)
          commits.push({
            effects: (commit.effects ?? []).filter(({ state }) => state === "ok").map(({ key }) => key),
            artifacts,
          });
        if (artifacts > 0 && isFull) inner.commit({ ...commit, epoch: -1 }, onCommitted);
        else inner.commit(commit, onCommitted);
      },
    };
    let made = 0;
    const tool = defineTool({
      name: "dump",
      description: "Gives something.",
      input: z.object({}),
      effect: "idempotent",
      run: () => {
        made += 1;
        return text;
      },
    });
    const loop = createToolLoop({ store, tools: [tool], turns: [[call("dump")], ["ok"]] });
    await expect(loop.start().result).rejects.toMatchObject({ code: "fenced" });
    expect(await inner.artifacts.list("t")).toEqual([]);
    expect(listEvents(loop, "tool.completed")).toEqual([]);
    isFull = false;
    inner.crash();
    const peer = inner.peer();
    const resumed = await loop.again({}, { store: peer }).result;
    expect(resumed.status).toBe("done");
    expect(made).toBe(2);
    expect(commits[0]).toEqual({ effects: ["id_dump"], artifacts: 1 });
    expect(await peer.artifacts.list("t")).toHaveLength(1);
  });

  test("a separate artifact store receives the artifacts, and the store of the run receives none", async () => {
    const place = memoryArtifacts();
    for (const store of [memoryStore(), "none"] as const) {
      const { artifacts, answer } = await runOneCall(text, { artifacts: place, store });
      expect(await getBody(place, artifacts[0]?.key ?? "")).toBe(text);
      expect(answer.content).toMatchObject([{ type: "artifact" }]);
      if (store !== "none") expect(await store.artifacts.list("t")).toEqual([]);
    }
  });

  test("cancelling a run does not wait for an artifact store that hangs", async () => {
    const hanging: ArtifactStore = { ...memoryArtifacts(), put: () => new Promise(() => undefined) };
    let putting = (): void => undefined;
    const started = new Promise<void>((resolve) => {
      putting = resolve;
    });
    const place: ArtifactStore = {
      ...hanging,
      put: (thread, artifact) => {
        putting();
        return hanging.put(thread, artifact);
      },
    };
    const loop = createToolLoop({ artifacts: place, tools: [createGivingTool(text)], turns: [[call("dump")], ["ok"]] });
    const handle = loop.start();
    await started;
    handle.cancel("enough");
    expect(await handle.result).toMatchObject({ status: "cancelled" });
  });

  test("tools can list and read the artifacts of their thread", async () => {
    const store = memoryStore();
    const first = await runToolLoop({ store, tools: [createGivingTool(text)], turns: [[call("dump")], ["ok"]] });
    const key = listResults(first)[0]?.artifacts?.[0]?.key ?? "";
    const count = defineTool({
      name: "count",
      description: "Counts.",
      input: z.object({}),
      effect: "pure",
      run: async (_, { artifacts }) => {
        const [row] = await artifacts.list();
        return `${row?.name} ${(await artifacts.read(getArtifactHandle(row?.key ?? ""))).length} ${row?.key === key}`;
      },
    });
    const loop = await runToolLoop({ store, tools: [count], turns: [[], ["x"], [call("count")], ["ok"]] });
    expect(getAnswerText(listToolAnswers(loop).at(-1))).toBe("dump.txt 20010 true");
  });
});
