# Installs this version and its pinned requirements; deploy/README.md says how the source archive is made.
class TheLoop < Formula
  desc "Keep coding agents in tmux, each in a Slack thread of its own"
  url "file://#{ENV.fetch("HOMEBREW_THE_LOOP_SOURCE", "/var/tmp/the-loop-0.1.0.tar.gz")}"
  version "0.1.0"
  license "Apache-2.0"

  depends_on "python@3.13"
  depends_on "tmux"

  def install
    python = Formula["python@3.13"].opt_bin/"python3.13"
    system python, "-m", "venv", libexec
    pip = [libexec/"bin/python", "-m", "pip", "--disable-pip-version-check", "install"]
    system(*pip, "--require-hashes", "-r", "requirements/build.txt", "-r", "requirements/run.txt")
    system(*pip, "--no-deps", "--no-build-isolation", ".")
    bin.install_symlink libexec/"bin/the-loop"
    generate_completions_from_executable(bin/"the-loop", "completion", shells: [:bash, :zsh, :fish])
  end

  service do
    run [opt_bin/"the-loop", "serve"]
    keep_alive successful_exit: false
    environment_variables PATH: std_service_path_env, LANG: "en_US.UTF-8"
    log_path var/"log/the-loop.log"
    error_log_path var/"log/the-loop.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/the-loop --version")
  end
end
