/** What every adapter of models must do with tools and files: run each test against an adapter of your own. */
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
import { holds, same } from "./assert.ts";

/** A model behind an adapter, whose provider answers what it is told to. */
export interface ModelUnderTest {
  readonly model: Model;
  /** What the provider was sent, one text a request. */
  readonly wires: () => readonly string[];
}

/** Opens a model whose provider streams these answers, one a request: texts, and calls with their arguments in pieces. */
export type OpenModel = (answers: readonly ModelReply[]) => ModelUnderTest | Promise<ModelUnderTest>;

/** One test of the suite: throws when the adapter does not do what `name` says. */
export interface ModelTest {
  readonly name: string;
  run(open: OpenModel): Promise<void>;
}

const said: ModelReply = { content: [{ type: "text", text: "Done" }], finish: "stop" };
const odd = "call_9-Zz";
const nested: JsonObject = {
  text: 'Grüße 気温 😀 "quoted" \\ \n\t',
  list: [1, [true, null], { deep: { deeper: ["ü"] } }],
  empty: {},
  none: [],
  number: -1.5e-7,
};

/** The tests that every adapter of models must pass. */
export const modelConformance: readonly ModelTest[] = [
  modelTest("a tool is told with its name, description and schema, and nothing else of it", async (open) => {
    const { model, wires } = await open([said]);
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
    await ask(model, [user], { tools: tool.forModel() });
    const [wire = ""] = wires();
    for (const shown of ["get_weather", "Weather of a city, now.", "City name"])
      holds(wire.includes(shown), `the request does not say "${shown}"`);
    holds(!/SENTINEL|hiddenSentinel|destructive/.test(wire), "the request says what no model is to know of a tool");
  }),

  modelTest("a call without arguments arrives as an empty object", async (open) => {
    const { model } = await open([calling(["now", {}, odd])]);
    same(callsIn(await ask(model, [user])), [[odd, "now", {}]], "the calls");
  }),

  modelTest("arguments arrive whole: unicode, quotes, nesting and numbers", async (open) => {
    const { model } = await open([calling(["act", nested, odd])]);
    same(callsIn(await ask(model, [user])), [[odd, "act", nested]], "the calls");
  }),

  modelTest(
    "two calls in one response arrive as two, in their order, and the reply says that it calls",
    async (open) => {
      const { model } = await open([calling(["a", { n: 1 }, "call_1"], ["b", { n: 2 }, "call_2"])]);
      const reply = await ask(model, [user]);
      same(
        callsIn(reply),
        [
          ["call_1", "a", { n: 1 }],
          ["call_2", "b", { n: 2 }],
        ],
        "the calls",
      );
      same(reply.finish, "calls", "why it finished");
    },
  ),

  modelTest(
    "streamed arguments come in pieces that make up the whole, under the id and the name of their call",
    async (open) => {
      const { model } = await open([calling(["act", nested, odd])]);
      const deltas: ModelDelta[] = [];
      await ask(model, [user], {}, (delta) => deltas.push(delta));
      const pieces = deltas.flatMap((delta) => (delta.type === "call" ? [delta] : []));
      holds(pieces.length > 0, "no piece of the arguments came");
      same([...new Set(pieces.map(({ id, name }) => `${id} ${name}`))], [`${odd} act`], "whose pieces they are");
      same(JSON.parse(pieces.map(({ argsText }) => argsText).join("")), nested, "the pieces together");
    },
  ),

  modelTest("the id of a call comes back with the call and with its answer", async (open) => {
    const { model, wires } = await open([said]);
    await ask(model, history([{ type: "text", text: "sunny" }]));
    const found = (wires()[0] ?? "").split(JSON.stringify(odd).slice(1, -1)).length - 1;
    holds(found >= 2, `the id stands ${found} times in the request, not with the call and with its answer`);
  }),

  modelTest("the answers to two calls go out in the order of the calls", async (open) => {
    const { model, wires } = await open([said]);
    await ask(model, [
      user,
      {
        role: "assistant",
        id: "m1",
        finish: "calls",
        content: [callBlock("a", {}, "call_1"), callBlock("b", {}, "call_2")],
      },
      answer("call_1", "a", [{ type: "text", text: "first answer" }]),
      answer("call_2", "b", [{ type: "text", text: "second answer" }]),
    ]);
    const [wire = ""] = wires();
    const [first, second] = [wire.indexOf("first answer"), wire.indexOf("second answer")];
    holds(first >= 0 && second > first, "the answers are not in the order of the calls");
  }),

  modelTest("an error of a tool reaches the model in its own words", async (open) => {
    const { model, wires } = await open([said]);
    await ask(model, history([{ type: "text", text: "city not found: Oslo" }], true));
    holds((wires()[0] ?? "").includes("city not found: Oslo"), "the request does not have the error");
  }),

  modelTest("an image in a result reaches the model, or is named where there can be none", async (open) => {
    const { model, wires } = await open([said]);
    const image: ContentBlock = { type: "image", mimeType: "image/png", data: "c2VudGluZWw=" };
    await ask(model, history([{ type: "text", text: "Here it is" }, image]));
    const [wire = ""] = wires();
    holds(wire.includes("Here it is"), "the request does not have the text beside the image");
    holds(wire.includes("c2VudGluZWw=") || wire.includes("image/png"), "the image is gone without a word");
  }),

  modelTest(
    "a file of a person reaches the model, or is named where it reads none: by bytes and by address",
    async (open) => {
      const { model, wires } = await open([said]);
      const file = { type: "file", mimeType: "application/pdf" } as const;
      const content: UserMessage["content"] = [
        { ...file, data: "c2VudGluZWw=" },
        { ...file, url: "https://files.example/report.pdf" },
      ];
      await ask(model, [{ role: "user", id: "u1", content }]);
      const [wire = ""] = wires();
      holds(wire.includes("c2VudGluZWw=") || wire.includes("application/pdf"), "the bytes are gone without a word");
      holds(wire.includes("files.example/report.pdf"), "the address is gone without a word");
    },
  ),
];

function modelTest(name: string, run: (open: OpenModel) => Promise<void>): ModelTest {
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

type Call = readonly [name: string, args: JsonObject, id: string];

function calling(...calls: readonly Call[]): ModelReply {
  return { content: calls.map((made) => callBlock(...made)), finish: "calls" };
}

function callBlock(name: string, args: JsonObject, id: string) {
  return { type: "call" as const, id, name, args };
}

function answer(callId: string, name: string, content: readonly ContentBlock[], isError = false): Message {
  return { role: "tool", id: `answer ${callId}`, callId, name, content, isError };
}

function history(content: readonly ContentBlock[], isError = false): readonly Message[] {
  const asked: Message = { role: "assistant", id: "m1", finish: "calls", content: [callBlock("act", { n: 1 }, odd)] };
  return [user, asked, answer(odd, "act", content, isError)];
}

function ask(
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

function callsIn({ content }: ModelReply): readonly unknown[] {
  return content.flatMap((block) => (block.type === "call" ? [[block.id, block.name, block.args]] : []));
}
