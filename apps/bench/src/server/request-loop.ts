/** Sends requests to a server over connections that are kept, a fixed number at a time. */
import { randomUUID } from "node:crypto";
import { Agent, request as sendHttp } from "node:http";
import { text } from "node:stream/consumers";
import type { ApiRequest } from "./api-server.ts";

/** Requests that wait for their responses at the same time. */
export const concurrency = 8;

/** Client of a server. */
export interface RequestLoop {
  /** Sends a request so many times. Throws for a response that is not the expected one. */
  readonly send: (request: ApiRequest, times: number) => Promise<void>;
  readonly close: () => void;
}

/** Creates the client of a server on this machine. */
export function createRequestLoop(port: number): RequestLoop {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency });
  return {
    send: async (request, times) => {
      let left = times;
      const work = async (): Promise<void> => {
        while (left > 0) {
          left -= 1;
          await sendRequest(request, { port, agent });
        }
      };
      await Promise.all(Array.from({ length: concurrency }, work));
    },
    close: () => agent.destroy(),
  };
}

async function sendRequest(
  { method, path, headers = {}, body, expected }: ApiRequest,
  target: { readonly port: number; readonly agent: Agent },
): Promise<void> {
  const id = randomUUID();
  const content = body === undefined ? "" : JSON.stringify(body).replaceAll("{id}", id);
  const response = await new Promise<{ readonly status: number | undefined; readonly content: string }>(
    (resolve, reject) => {
      const sent = sendHttp(
        {
          ...target,
          host: "127.0.0.1",
          method,
          path: path.replaceAll("{id}", id),
          headers: {
            ...headers,
            ...(body !== undefined && {
              "content-type": "application/json",
              "content-length": Buffer.byteLength(content),
            }),
          },
        },
        (received) =>
          text(received).then(
            (receivedText) => resolve({ status: received.statusCode, content: receivedText }),
            reject,
          ),
      );
      sent.on("error", reject);
      sent.end(content);
    },
  );
  const times = response.content.split(expected.text).length - 1;
  if (response.status === undefined || response.status >= 300 || times !== expected.times)
    throw new Error(
      `${method} ${path}: expected ${expected.times} times ${expected.text}, got ${times} times with status ${response.status}: ${response.content.slice(0, 300)}`,
    );
}
