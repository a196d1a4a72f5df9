/** A loopback server that streams provider frames, valid or broken. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface WireRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** Returns the value at a path of a request body, such as `sent(request, "messages", 1, "content")`. */
export function getSentValue(request: WireRequest | undefined, ...path: readonly (string | number)[]): unknown {
  let found: unknown = request?.body;
  for (const key of path) found = (found as Readonly<Record<string | number, unknown>> | undefined)?.[key];
  return found;
}

/** Returns the list at a path of a request body. */
export function getSentList(
  request: WireRequest | undefined,
  ...path: readonly (string | number)[]
): readonly unknown[] {
  const found = getSentValue(request, ...path);
  return Array.isArray(found) ? found : [];
}

export type WireAnswer = (response: ServerResponse) => void;

export interface WireServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: WireRequest[];
}

/** Answers the requests in order; the last answer repeats. */
export async function startWireServer(...answers: readonly WireAnswer[]): Promise<WireServer> {
  const requests: WireRequest[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const answer = answers[Math.min(requests.length, answers.length - 1)];
      const text = Buffer.concat(chunks).toString();
      requests.push({ path: request.url ?? "", headers: request.headers, body: JSON.parse(text) });
      answer?.(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Answers with a status and a JSON body. */
export function status(code: number, body: unknown, headers: Record<string, string> = {}): WireAnswer {
  return (response) => {
    response.writeHead(code, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/** Streams server-sent events; a frame is an object, or text that is sent unchanged. */
export function events(frames: readonly unknown[]): WireAnswer {
  return (response) => {
    open(response);
    response.end(frames.map(toFrameText).join(""));
  };
}

/** Streams server-sent events, then breaks the connection. */
export function cutAfter(frames: readonly unknown[]): WireAnswer {
  return (response) => {
    open(response);
    response.write(frames.map(toFrameText).join(""), () => response.socket?.end());
  };
}

/** Streams server-sent events, then nothing until the client disconnects, which calls `gone`. */
export function stallAfter(frames: readonly unknown[], gone: () => void): WireAnswer {
  return (response) => {
    open(response);
    response.on("close", gone);
    response.write(frames.map(toFrameText).join(""));
  };
}

function open(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

export function toFrameText(frame: unknown): string {
  if (typeof frame === "string") return `data: ${frame}\n\n`;
  const { type } = frame as { type?: string };
  return `${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(frame)}\n\n`;
}
