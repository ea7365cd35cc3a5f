#!/bin/sh
# Boots systemd as process 1 of namespaces of its own, on a throw-away layer over a bare Debian. Nothing outside of the namespaces is
# written to but the (empty) folder. To be run by `unshare --mount --pid --net --uts --ipc --cgroup --fork`.
# Arguments: folder for the layer, the bare Debian, a folder with packages, which appears as /srv/packages.
set -eu
layer=$1 bare=$2 packages=$3

mount --make-rprivate /
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
root=$layer/root
mount -t overlay overlay -o "lowerdir=$bare,upperdir=$layer/upper,workdir=$layer/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t tmpfs tmpfs "$root/run" -o mode=755
mount -t tmpfs tmpfs "$root/dev" -o mode=755
for device in null zero full random urandom tty; do
    : > "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts" -o newinstance,ptmxmode=0666
mount -t tmpfs tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"
mkdir -p "$root/srv/packages"
cp "$packages"/*.deb "$root/srv/packages"
printf '127.0.0.1 localhost box\n' > "$root/etc/hosts"
: > "$root/etc/resolv.conf"
echo box > "$root/etc/hostname"

units=$root/etc/systemd/system
for unit in systemd-sysctl systemd-modules-load systemd-sysusers systemd-remount-fs systemd-update-utmp systemd-random-seed \
    systemd-journal-flush systemd-udevd systemd-udev-trigger systemd-pstore systemd-binfmt systemd-networkd systemd-resolved \
    getty@tty1 console-getty systemd-logind; do
    ln -sf /dev/null "$units/$unit.service"
done
printf '[Unit]\nRequires=basic.target\nAfter=basic.target\n' > "$units/box.target"

# A client in a namespace of its own, behind lan0.
hostname box
ip link set lo up
ip link add lan0 type veth peer name eth0
ip address add 192.168.77.1/24 dev lan0
ip address add fd00:77::1/64 dev lan0 nodad
ip link set lan0 up

mkdir "$root/old"
cd "$root"
pivot_root . old
umount -l /old
ip netns add client
ip link set eth0 netns client
ip -n client link set lo up
ip -n client address add 192.168.77.2/24 dev eth0
ip -n client link set eth0 up
ip -n client route add default via 192.168.77.1
container=unshare exec /lib/systemd/systemd --system --unit=box.target --log-target=journal --show-status=no
