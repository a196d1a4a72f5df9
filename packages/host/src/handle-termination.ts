/** Orderly end of a process at SIGTERM, the signal of container platforms and service managers. */

/**
 * Awaits `finish` at the first SIGTERM, then exits with code 0, or with code 1 if it rejects. A second SIGTERM ends the
 * process at once. Returns a function that removes the handler.
 */
export function handleTermination(finish: () => Promise<void>): () => void {
  const remove = (): void => {
    process.off("SIGTERM", handle);
  };
  const handle = (): void => {
    // Without a handler the next signal has its default action: the process ends.
    remove();
    finish().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on("SIGTERM", handle);
  return remove;
}
