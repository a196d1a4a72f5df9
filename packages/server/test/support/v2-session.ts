/** Client of the streaming events protocol, over the handler of a test server. */
import * as z from "zod";
import { langgraph } from "../../src/langgraph.ts";
import { createTestServer, type TestCaller, type TestServer, type TestServerOptions } from "./create-test-server.ts";

const frame = z.looseObject({
  type: z.string(),
  event_id: z.string().optional(),
  seq: z.number().optional(),
  method: z.string().optional(),
  params: z.looseObject({ namespace: z.array(z.string()), data: z.unknown() }).optional(),
});

/** Frame as a client parses it. */
export type WireFrame = z.infer<typeof frame>;

const reply = z.looseObject({
  type: z.enum(["success", "error"]),
  error: z.string().optional(),
  message: z.string().optional(),
  result: z.looseObject({}).optional(),
  meta: z.looseObject({ applied_through_seq: z.number().optional() }).optional(),
});

/** Open stream. */
export interface V2Stream {
  readonly status: number;
  readonly frames: readonly WireFrame[];
  /** Reads until a frame fits. */
  readonly until: (fits: (frame: WireFrame) => boolean) => Promise<WireFrame>;
  readonly close: () => Promise<void>;
}

/** Server with the LangGraph protocol. */
export interface V2Session extends TestServer {
  readonly command: (method: unknown, params?: object, as?: TestCaller) => Promise<z.infer<typeof reply>>;
  readonly open: (subscription?: object, as?: TestCaller) => Promise<V2Stream>;
  /** Sends a message, and reads until the run rests. */
  readonly say: (content: string) => Promise<V2Stream>;
}

export const everything = {
  channels: ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"],
};

/** Returns an input with a message of the user. */
export function human(content: string): object {
  return { messages: [{ type: "human", content }] };
}

/** Returns true for the end of a run. */
export function isRest({ method, params }: WireFrame): boolean {
  const event: unknown = Reflect.get(Object(params?.data), "event");
  return method === "lifecycle" && params?.namespace.length === 0 && event !== "running";
}

/** Creates a server, and a client of one of its threads. */
export async function createV2Session(options: TestServerOptions = {}, thread = "t1"): Promise<V2Session> {
  const server = await createTestServer({ protocols: [langgraph()], ...options });
  const path = `/langgraph/threads/${thread}`;
  let id = 0;
  const command: V2Session["command"] = async (method, params = {}, as = "ann") => {
    id += 1;
    const { body } = await server.sendJson(`${path}/commands`, { body: { id, method, params }, as });
    return reply.parse(body);
  };
  const open: V2Session["open"] = async (subscription = everything, as = "ann") => {
    const leave = new AbortController();
    const request = { body: subscription, as, signal: leave.signal };
    const response = await server.send(`${path}/stream/events`, request);
    return readStream(server, response, leave);
  };
  return {
    ...server,
    command,
    open,
    say: async (content) => {
      const stream = await open();
      const started = await command("run.start", { assistant_id: "assistant", input: human(content) });
      const from = (started.meta?.applied_through_seq ?? 0) + 1;
      await stream.until((found) => isRest(found) && (found.seq ?? 0) >= from);
      return stream;
    },
  };
}

function readStream({ clock }: TestServer, response: Response, leave: AbortController): V2Stream {
  const frames: WireFrame[] = [];
  const lines = readLines(response);
  let next = 0;
  return {
    status: response.status,
    frames,
    until: async (fits) => {
      for (;;) {
        const found = frames.slice(next).findIndex(fits);
        if (found >= 0) {
          next += found + 1;
          return frames[next - 1] ?? { type: "none" };
        }
        next = frames.length;
        const line = await clock.until(lines.next());
        if (line.done === true) throw new Error("the stream has ended");
        if (line.value.startsWith("data: ")) frames.push(frame.parse(JSON.parse(line.value.slice("data: ".length))));
      }
    },
    close: async () => {
      leave.abort();
      await lines.return(undefined);
    },
  };
}

async function* readLines({ body }: Response): AsyncGenerator<string, undefined, undefined> {
  let text = "";
  for await (const part of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const parts = (text + part).split("\n");
    text = parts.pop() ?? "";
    yield* parts;
  }
  return undefined;
}
