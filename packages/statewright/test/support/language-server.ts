/** Client of the language server of TypeScript 7: the Language Server Protocol over stdin and stdout. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { pathToFileURL } from "node:url";
import { compilers } from "./type-project.ts";

interface ServerMessage {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: { readonly items?: readonly unknown[] };
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

export interface LanguageServer {
  /** Sends a request and returns its result. Rejects with the error of the server. */
  readonly ask: (method: string, params?: object) => Promise<unknown>;
  readonly notify: (method: string, params: object) => void;
  readonly close: () => Promise<void>;
}

const capabilities = { textDocument: { hover: { contentFormat: ["plaintext"] } } };

/** Starts a language server for the project in a folder. */
export async function startLanguageServer(folder: string): Promise<LanguageServer> {
  const child = spawn(process.execPath, [compilers["TypeScript 7"], "--lsp", "--stdio"]);
  const requests = new Map<number | string, (answer: ServerMessage) => void>();
  const send = (message: object): void => {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    child.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  };
  readMessages(child, (message) => {
    if (message.id === undefined) return;
    if (message.method === undefined) requests.get(message.id)?.(message);
    // The server asks for its configuration and for registrations: each gets the default.
    else send({ id: message.id, result: message.params?.items?.map(() => null) ?? null });
  });
  let last = 0;
  const ask = async (method: string, params?: object): Promise<unknown> => {
    const id = ++last;
    const answer = await new Promise<ServerMessage>((resolve) => {
      requests.set(id, resolve);
      send({ id, method, params });
    });
    requests.delete(id);
    if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  };
  const notify = (method: string, params: object): void => send({ method, params });
  await ask("initialize", { processId: process.pid, rootUri: pathToFileURL(folder).href, capabilities });
  notify("initialized", {});
  return {
    ask,
    notify,
    close: async () => {
      await ask("shutdown");
      const exit = once(child, "exit");
      send({ method: "exit" });
      child.stdin.end();
      await exit;
    },
  };
}

/** Calls `listener` with each message of the server: a header with the length, an empty line and JSON. */
function readMessages(
  { stdout }: Pick<ChildProcessWithoutNullStreams, "stdout">,
  listener: (message: ServerMessage) => void,
): void {
  let rest = Buffer.alloc(0);
  stdout.on("data", (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      const headerEnd = rest.indexOf("\r\n\r\n");
      const length = /Content-Length: (\d+)/i.exec(rest.subarray(0, Math.max(headerEnd, 0)).toString())?.[1];
      const start = headerEnd + 4;
      const end = start + Number(length);
      if (length === undefined || rest.length < end) return;
      listener(JSON.parse(rest.subarray(start, end).toString()));
      rest = rest.subarray(end);
    }
  });
}
