/** Raw bytes over real sockets, for invalid requests. */
import { connect } from "node:net";

export interface RawAnswer {
  readonly status: number;
  /** Header values by lower-case name. */
  readonly head: string;
  readonly body: string;
}

/**
 * Sends bytes and reads until the server closes or has sent a complete answer; `rest` is sent while the socket accepts
 * it.
 */
export function raw(port: number, bytes: string | Uint8Array, rest?: () => string): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    let text = "";
    const send = (): void => {
      if (rest === undefined || text !== "") return;
      while (!socket.destroyed && socket.write(rest())) if (text !== "") return;
    };
    const end = (): void => {
      socket.destroy();
      const [head = "", ...body] = text.split("\r\n\r\n");
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]);
      if (text === "") reject(new Error("the server closed without an answer"));
      else resolve({ status, head: head.toLowerCase(), body: body.join("\r\n\r\n") });
    };
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (isWhole(text)) end();
    });
    socket.on("drain", send);
    socket.on("close", end);
    socket.on("error", (error) => {
      if (text === "") reject(error);
    });
    socket.write(bytes);
    send();
  });
}

function isWhole(text: string): boolean {
  const [head = "", body] = text.split("\r\n\r\n");
  if (body === undefined) return false;
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  if (length !== undefined) return body.length >= Number(length);
  return /transfer-encoding: chunked/i.test(head)
    ? text.endsWith("0\r\n\r\n")
    : /HTTP\/1\.1 (?:202|204|400)/.test(head);
}

/** Formats a request as bytes. */
export function request(
  { method = "POST", target = "/mcp", headers, body = "" }: RawRequest,
  length: string = `content-length: ${Buffer.byteLength(body)}\r\n`,
): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return `${method} ${target} HTTP/1.1\r\n${lines}${length}\r\n${body}`;
}

export interface RawRequest {
  readonly method?: string;
  readonly target?: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly body?: string;
}
