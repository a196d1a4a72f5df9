/** Official clients of both protocol generations, as used by hosts. */
import {
  Client,
  type ClientOptions,
  type ElicitResult,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

/** The handshake of 2025, and the sessionless requests of 2026. */
export type Generation = "2025" | "2026";

export interface ClientParts {
  readonly generation?: Generation;
  /** Answers elicitations; a client without it declares no elicitation capability. */
  readonly person?: (asked: {
    readonly message: string;
    readonly requestedSchema: unknown;
  }) => ElicitResult | Promise<ElicitResult>;
}

function createClient({ generation = "2026", person }: ClientParts): Client {
  const options: ClientOptions = {
    capabilities: person === undefined ? {} : { elicitation: {} },
    versionNegotiation: { mode: generation === "2025" ? "legacy" : { pin: "2026-07-28" } },
  };
  const client = new Client({ name: "host", version: "1.0.0" }, options);
  if (person !== undefined)
    client.setRequestHandler("elicitation/create", ({ params }) => person(params as Parameters<typeof person>[0]));
  return client;
}

/** Connects a client over HTTP. */
export async function connectOverHttp(
  { url, token }: { readonly url: string; readonly token: string | undefined },
  parts: ClientParts = {},
): Promise<Client> {
  const client = createClient(parts);
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization: `Bearer ${token}` } } }),
  );
  return client;
}

/** Starts a server as the client's child process. */
export async function connectOverStdio(
  script: URL,
  env: Readonly<Record<string, string>>,
  parts: ClientParts = {},
): Promise<{ readonly client: Client; readonly pid: number }> {
  const client = createClient(parts);
  const transport = new StdioClientTransport({ command: process.execPath, args: [script.pathname], env: { ...env } });
  await client.connect(transport);
  return { client, pid: transport.pid ?? 0 };
}
