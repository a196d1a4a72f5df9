/** Test server of the native API: every answer is checked against the OpenAPI document. */
import { awaitOnClock } from "./await-on-clock.ts";
import { checkAnswer, isJsonType } from "./check-answer.ts";
import {
  createTestRequest,
  createTestServer,
  type TestRequest,
  type TestServer,
  type TestServerOptions,
} from "./create-test-server.ts";

/** Answer with its parsed body. */
export interface NativeAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Parsed JSON; undefined without a body, and for another media type. */
  readonly body: unknown;
}

/** Frame of a stream. */
export interface Frame {
  readonly id?: string;
  readonly event: string;
  readonly data: unknown;
}

/** Parses the frames of a stream of server-sent events. */
export function parseFrames(text: string): readonly Frame[] {
  const lines = text.split("\n").filter((line) => !line.startsWith(":"));
  const blocks = lines.join("\n").split("\n\n");
  return blocks.flatMap((block) => {
    const fields = new Map(
      block.split("\n").map((line) => [line.split(": ", 1)[0] ?? "", line.slice(line.indexOf(": ") + 2)]),
    );
    const [event, data, id] = [fields.get("event"), fields.get("data"), fields.get("id")];
    if (event === undefined || data === undefined) return [];
    return [{ ...(id === undefined ? {} : { id }), event, data: JSON.parse(data) }];
  });
}

/** Open stream of a test. */
export interface OpenStream {
  readonly response: Response;
  /** Reads frames until one fits; advances the clock while it waits. */
  readonly readUntil: (fits: (frame: Frame) => boolean) => Promise<readonly Frame[]>;
  readonly close: () => Promise<void>;
}

/** Server of the native API. */
export interface NativeServer extends TestServer {
  /** Sends a request below `/api`, checks the answer against the document, and reads it whole. */
  readonly call: (path: string, request?: TestRequest) => Promise<NativeAnswer>;
  /** As `call`, with a body that is not JSON. */
  readonly upload: (
    path: string,
    body: Uint8Array | string,
    request: TestRequest & { readonly type: string },
  ) => Promise<NativeAnswer>;
  /** Opens a stream below `/api`. */
  readonly open: (path: string, request?: TestRequest) => Promise<OpenStream>;
}

/** Creates a test server of the native API. */
export async function createNativeServer(options: TestServerOptions = {}): Promise<NativeServer> {
  const testServer = await createTestServer(options);
  const { server, clock, send } = testServer;
  const readAnswer = async (method: string, path: string, response: Response): Promise<NativeAnswer> => {
    const text = await awaitOnClock(clock, response.text());
    checkAnswer({ method, path: `/api${path}` }, response, text);
    const isJson = isJsonType(response.headers.get("content-type") ?? "");
    const { status, headers } = response;
    return { status, headers, text, body: isJson && text !== "" ? JSON.parse(text) : undefined };
  };
  return {
    ...testServer,
    call: async (path, request = {}) => {
      const method = request.method ?? (request.body === undefined ? "GET" : "POST");
      return await readAnswer(method, path, await send(`/api${path}`, request));
    },
    upload: async (path, body, { type, ...request }) => {
      const bare = createTestRequest(`/api${path}`, { method: "POST", ...request });
      const headers = new Headers(bare.headers);
      headers.set("content-type", type);
      const sent = new Request(bare.url, { method: bare.method, headers, body: new Blob([body]) });
      if (type !== "") sent.headers.set("content-type", type);
      return await readAnswer(bare.method, path, await awaitOnClock(clock, server.fetch(sent)));
    },
    open: async (path, request = {}) => {
      const left = new AbortController();
      const response = await send(`/api${path}`, { ...request, signal: left.signal });
      if (response.body === null || !(response.headers.get("content-type") ?? "").startsWith("text/event-stream"))
        throw new Error(`expected a stream, got ${response.status} ${await response.text()}`);
      return createOpenStream(response, { clock, left });
    },
  };
}

function createOpenStream(
  response: Response,
  { clock, left }: { readonly clock: TestServer["clock"]; readonly left: AbortController },
): OpenStream {
  const reader = response.body?.getReader();
  if (reader === undefined) throw new Error("the response has no body");
  const decoder = new TextDecoder();
  let text = "";
  return {
    response,
    readUntil: async (fits) => {
      for (;;) {
        const end = text.lastIndexOf("\n\n");
        const whole = end < 0 ? "" : text.slice(0, end + 2);
        const frames = parseFrames(whole);
        const nth = frames.findIndex(fits);
        if (nth >= 0) {
          text = text.slice(end + 2);
          return frames;
        }
        const { done, value } = await awaitOnClock(clock, reader.read());
        if (done) throw new Error(`the stream ended before the frame came: ${text}`);
        text += decoder.decode(value, { stream: true });
      }
    },
    close: async () => {
      left.abort();
      await reader.cancel();
    },
  };
}

/** Input of the assistant with a message of the user. */
export function say(text: string, id = "m1"): { readonly messages: readonly unknown[] } {
  return { messages: [{ role: "user", id, content: [{ type: "text", text }] }] };
}
