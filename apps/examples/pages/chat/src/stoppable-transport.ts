import { DefaultChatTransport, type UIMessage } from "ai";

/** Transport that ends a run: `stop()` of `useChat` only closes the connection, and the run goes on. */
export class StoppableTransport<Message extends UIMessage> extends DefaultChatTransport<Message> {
  async stop(chatId: string): Promise<void> {
    const headers = { "content-type": "application/json", ...(await this.#getHeaders()) };
    await fetch(`${this.api}/${encodeURIComponent(chatId)}/stop`, { method: "POST", headers, body: "{}" });
  }

  async #getHeaders(): Promise<Record<string, string>> {
    const headers = typeof this.headers === "function" ? await this.headers() : await this.headers;
    return headers instanceof Headers ? Object.fromEntries(headers) : { ...headers };
  }
}
