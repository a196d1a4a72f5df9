/** A server on the loopback that speaks what providers speak, frame by frame, also badly. */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface WireRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** What stands in a request at a path, such as `sent(request, "messages", 1, "content")`. */
export function sent(request: WireRequest | undefined, ...path: readonly (string | number)[]): unknown {
  let found: unknown = request?.body;
  for (const key of path) found = (found as Readonly<Record<string | number, unknown>> | undefined)?.[key];
  return found;
}

/** The list that stands there. */
export function sentList(request: WireRequest | undefined, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = sent(request, ...path);
  return Array.isArray(found) ? found : [];
}

export type WireAnswer = (response: ServerResponse) => void;

export interface WireServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: WireRequest[];
}

/** Answers the requests in turn, the last answer again and again. */
export async function wireServer(...answers: readonly WireAnswer[]): Promise<WireServer> {
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

/** A status with a JSON body. */
export function status(code: number, body: unknown, headers: Record<string, string> = {}): WireAnswer {
  return (response) => {
    response.writeHead(code, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  };
}

/** Server-sent events; each frame is an object, or text that is sent as it is. */
export function events(frames: readonly unknown[]): WireAnswer {
  return (response) => {
    open(response);
    response.end(frames.map(frameText).join(""));
  };
}

/** Server-sent events, then a connection that breaks. */
export function cutAfter(frames: readonly unknown[]): WireAnswer {
  return (response) => {
    open(response);
    response.write(frames.map(frameText).join(""), () => response.socket?.end());
  };
}

/** Server-sent events, then silence until the client goes: `gone` is called then. */
export function silentAfter(frames: readonly unknown[], gone: () => void): WireAnswer {
  return (response) => {
    open(response);
    response.on("close", gone);
    response.write(frames.map(frameText).join(""));
  };
}

function open(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
}

export function frameText(frame: unknown): string {
  if (typeof frame === "string") return `data: ${frame}\n\n`;
  const { type } = frame as { type?: string };
  return `${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(frame)}\n\n`;
}
