/** Conformance tests of model adapters: tools, tool calls, images and files. */
import {
  type ContentBlock,
  defineTool,
  type JsonObject,
  type Message,
  type Model,
  type ModelDelta,
  type ModelReply,
  type ModelRequest,
  type Schema,
  toolRegistry,
  type UserMessage,
} from "@statewright/core";
import { assertEqual, assertTrue } from "./assert.ts";

/** A model behind an adapter, with a scripted provider. */
export interface ModelUnderTest {
  readonly model: Model;
  /** Returns the requests that the provider received, a single text per request. */
  readonly listRequests: () => readonly string[];
}

/**
 * Opens a model whose provider streams the given replies, one per request: texts, and tool calls with arguments in
 * pieces.
 */
export type OpenModel = (answers: readonly ModelReply[]) => ModelUnderTest | Promise<ModelUnderTest>;

/** A test of the suite. `run` throws when the adapter violates `name`. */
export interface ModelTest {
  readonly name: string;
  /** Runs the test with fresh instances from `open`. Rejects when the test fails. */
  run(open: OpenModel): Promise<void>;
}

const textReply: ModelReply = { content: [{ type: "text", text: "Done" }], finish: "stop" };
const unusualId = "call_9-Zz";
const nested: JsonObject = {
  text: 'Grüße 気温 😀 "quoted" \\ \n\t',
  list: [1, [true, null], { deep: { deeper: ["ü"] } }],
  empty: {},
  none: [],
  number: -1.5e-7,
};

/** Tests for every model adapter. */
export const modelConformance: readonly ModelTest[] = [
  defineModelTest(
    "a model request contains the name, description and schema of a tool, and no other tool options",
    async (open) => {
      const { model, listRequests } = await open([textReply]);
      const tool = toolRegistry([
        defineTool({
          name: "get_weather",
          label: "SENTINEL-label",
          description: "Weather of a city, now.",
          input: weatherInput,
          inject: { hiddenSentinel: { kind: "custom", resolve: () => "SENTINEL-value" } },
          safety: { access: "destructive", roots: ["/SENTINEL-root"] },
          run: () => "x",
        }),
      ]);
      await requestReply(model, [user], { tools: tool.forModel() });
      const [wire = ""] = listRequests();
      for (const shown of ["get_weather", "Weather of a city, now.", "City name"])
        assertTrue(wire.includes(shown), `expected the model request to contain "${shown}"`);
      assertTrue(
        !/SENTINEL|hiddenSentinel|destructive/.test(wire),
        "the model request contains private options of a tool",
      );
    },
  ),

  defineModelTest("a tool call without arguments arrives with an empty object", async (open) => {
    const { model } = await open([createCallReply(["now", {}, unusualId])]);
    assertEqual(listCalls(await requestReply(model, [user])), [[unusualId, "now", {}]], "the calls");
  }),

  defineModelTest("arguments arrive complete: unicode, quotes, nesting and numbers", async (open) => {
    const { model } = await open([createCallReply(["act", nested, unusualId])]);
    assertEqual(listCalls(await requestReply(model, [user])), [[unusualId, "act", nested]], "the calls");
  }),

  defineModelTest("two tool calls in one response arrive in order, and the reply finishes with calls", async (open) => {
    const { model } = await open([createCallReply(["a", { n: 1 }, "call_1"], ["b", { n: 2 }, "call_2"])]);
    const reply = await requestReply(model, [user]);
    assertEqual(
      listCalls(reply),
      [
        ["call_1", "a", { n: 1 }],
        ["call_2", "b", { n: 2 }],
      ],
      "the calls",
    );
    assertEqual(reply.finish, "calls", "the finish reason");
  }),

  defineModelTest(
    "streamed argument pieces add up to the complete arguments, with the id and the name of their tool call",
    async (open) => {
      const { model } = await open([createCallReply(["act", nested, unusualId])]);
      const deltas: ModelDelta[] = [];
      await requestReply(model, [user], {}, (delta) => deltas.push(delta));
      const pieces = deltas.flatMap((delta) => (delta.type === "call" ? [delta] : []));
      assertTrue(pieces.length > 0, "expected deltas with argument pieces, got none");
      assertEqual(
        [...new Set(pieces.map(({ id, name }) => `${id} ${name}`))],
        [`${unusualId} act`],
        "the ids and names of the pieces",
      );
      assertEqual(JSON.parse(pieces.map(({ argsText }) => argsText).join("")), nested, "the joined pieces");
    },
  ),

  defineModelTest("the id of a tool call is sent to the provider with the call and with its result", async (open) => {
    const { model, listRequests } = await open([textReply]);
    await requestReply(model, createHistory([{ type: "text", text: "sunny" }]));
    const found = (listRequests()[0] ?? "").split(JSON.stringify(unusualId).slice(1, -1)).length - 1;
    assertTrue(
      found >= 2,
      `expected the id of the tool call in the request twice, with the call and with its result; found ${found}`,
    );
  }),

  defineModelTest("the results of two tool calls are sent in the order of the calls", async (open) => {
    const { model, listRequests } = await open([textReply]);
    await requestReply(model, [
      user,
      {
        role: "assistant",
        id: "m1",
        finish: "calls",
        content: [createCallBlock("a", {}, "call_1"), createCallBlock("b", {}, "call_2")],
      },
      createToolMessage("call_1", "a", [{ type: "text", text: "first answer" }]),
      createToolMessage("call_2", "b", [{ type: "text", text: "second answer" }]),
    ]);
    const [wire = ""] = listRequests();
    const [first, second] = [wire.indexOf("first answer"), wire.indexOf("second answer")];
    assertTrue(first >= 0 && second > first, "the tool results are not in the order of the calls");
  }),

  defineModelTest("an error of a tool reaches the model unchanged", async (open) => {
    const { model, listRequests } = await open([textReply]);
    await requestReply(model, createHistory([{ type: "text", text: "city not found: Oslo" }], { isError: true }));
    assertTrue(
      (listRequests()[0] ?? "").includes("city not found: Oslo"),
      "the model request does not contain the text of the tool error",
    );
  }),

  defineModelTest(
    "an image in a tool result reaches the model, or is replaced by a note where images are not supported",
    async (open) => {
      const { model, listRequests } = await open([textReply]);
      const image: ContentBlock = { type: "image", mimeType: "image/png", data: "c2VudGluZWw=" };
      await requestReply(model, createHistory([{ type: "text", text: "Here it is" }, image]));
      const [wire = ""] = listRequests();
      assertTrue(wire.includes("Here it is"), "the model request does not contain the text next to the image");
      assertTrue(wire.includes("c2VudGluZWw=") || wire.includes("image/png"), "the image was dropped without a note");
    },
  ),

  defineModelTest(
    "a file in a user message reaches the model, or is replaced by a note: by bytes and by URL",
    async (open) => {
      const { model, listRequests } = await open([textReply]);
      const file = { type: "file", mimeType: "application/pdf" } as const;
      const content: UserMessage["content"] = [
        { ...file, data: "c2VudGluZWw=" },
        { ...file, url: "https://files.example/report.pdf" },
      ];
      await requestReply(model, [{ role: "user", id: "u1", content }]);
      const [wire = ""] = listRequests();
      assertTrue(
        wire.includes("c2VudGluZWw=") || wire.includes("application/pdf"),
        "the file bytes were dropped without a note",
      );
      assertTrue(wire.includes("files.example/report.pdf"), "the file URL was dropped without a note");
    },
  ),
];

function defineModelTest(name: string, run: (open: OpenModel) => Promise<void>): ModelTest {
  return { name, run };
}

const user: Message = { role: "user", id: "u1", content: [{ type: "text", text: "Go" }] };

const weatherSchema: JsonObject = {
  type: "object",
  properties: { city: { type: "string", description: "City name" } },
  required: ["city"],
};
const weatherInput: Schema<{ city: string }> = {
  "~standard": {
    version: 1,
    vendor: "conformance",
    validate: (value) => ({ value: value as { city: string } }),
    ...{ jsonSchema: { input: () => weatherSchema } },
  },
};

/** Outcome of a tool call; default: no error. */
interface ToolOutcome {
  readonly isError?: boolean;
}

type CallParts = readonly [name: string, args: JsonObject, id: string];

function createCallReply(...calls: readonly CallParts[]): ModelReply {
  return { content: calls.map((parts) => createCallBlock(...parts)), finish: "calls" };
}

function createCallBlock(name: string, args: JsonObject, id: string) {
  return { type: "call" as const, id, name, args };
}

function createToolMessage(
  callId: string,
  name: string,
  content: readonly ContentBlock[],
  { isError = false }: ToolOutcome = {},
): Message {
  return { role: "tool", id: `answer ${callId}`, callId, name, content, isError };
}

function createHistory(content: readonly ContentBlock[], outcome: ToolOutcome = {}): readonly Message[] {
  const callMessage: Message = {
    role: "assistant",
    id: "m1",
    finish: "calls",
    content: [createCallBlock("act", { n: 1 }, unusualId)],
  };
  return [user, callMessage, createToolMessage(unusualId, "act", content, outcome)];
}

function requestReply(
  model: Model,
  messages: readonly Message[],
  more: Partial<ModelRequest> = {},
  delta?: (delta: ModelDelta) => void,
): Promise<ModelReply> {
  return model.respond(
    { messages, tools: [], ...more },
    { signal: new AbortController().signal, ...(delta && { delta }) },
  );
}

function listCalls({ content }: ModelReply): readonly unknown[] {
  return content.flatMap((block) => (block.type === "call" ? [[block.id, block.name, block.args]] : []));
}
